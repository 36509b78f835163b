import { DatabaseSync } from "node:sqlite";
import { GENESIS_HASH, LINK_SQL, linkInPlace } from "../src/event-hash-chain.ts";

/** Changes a log like an attacker who can write the file: drops the triggers, and executes any SQL. */
export function tamper(file: string, sql: string): void {
  const raw = new DatabaseSync(file);
  for (const table of ["events", "streams", "types"]) {
    raw.exec(`DROP TRIGGER IF EXISTS ${table}_are_never_updated; DROP TRIGGER IF EXISTS ${table}_are_never_deleted`);
  }
  raw.exec(sql);
  raw.close();
}

/** Gives every event the hash of its present content, like an attacker who knows the format. */
export function rebuildChain(file: string): void {
  const raw = new DatabaseSync(file);
  const rows = raw.prepare(
    `SELECT e.position, ${LINK_SQL} AS bytes FROM events e JOIN streams s ON s.id = e.stream
     JOIN types t ON t.id = e.type ORDER BY e.position`,
  );
  const update = raw.prepare("UPDATE events SET hash = ? WHERE position = ?");
  raw.exec("BEGIN");
  let hash = GENESIS_HASH;
  for (const row of rows.all()) {
    hash = linkInPlace(hash, row["bytes"] as Uint8Array);
    update.run(hash, Number(row["position"]));
  }
  raw.exec("COMMIT");
  raw.close();
}

/**
 * Damages an index, so that it names another value of `column` than the event at `position` has. Changes both values,
 * then removes the index from SQLite's schema, restores the event, and puts the index back.
 */
export function misindex(file: string, index: string, column: "type" | "version", position: number): void {
  const unique = ",\n    UNIQUE (stream, version)";
  const change = (by: string): void =>
    tamper(file, `PRAGMA foreign_keys = 0; UPDATE events SET ${column} = ${column} ${by} WHERE position = ${position}`);
  change("+ 1000000");
  editSchema(
    file,
    `CREATE TABLE kept AS SELECT rowid AS row, * FROM sqlite_schema WHERE name IN ('events', '${index}');
     DELETE FROM sqlite_schema WHERE name = '${index}';
     UPDATE sqlite_schema SET sql = replace(sql, '${index.startsWith("sqlite_") ? unique : ""}', '') WHERE name = 'events'`,
  );
  change("- 1000000");
  editSchema(
    file,
    `UPDATE sqlite_schema SET sql = (SELECT sql FROM kept WHERE name = 'events') WHERE name = 'events';
     INSERT INTO sqlite_schema SELECT type, name, tbl_name, rootpage, sql FROM kept WHERE name = '${index}'`,
  );
  tamper(file, "DROP TABLE kept");
}

/** Edits the database's schema, as an attacker could; the change has an effect from the next opening on. */
function editSchema(file: string, sql: string): void {
  const raw = new DatabaseSync(file, { defensive: false });
  raw.exec(`PRAGMA writable_schema = 1; ${sql}`);
  raw.close();
}
