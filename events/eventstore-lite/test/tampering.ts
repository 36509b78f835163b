import { DatabaseSync } from "node:sqlite";
import { CANONICAL_SQL, createLink, GENESIS_HASH } from "../src/chain.ts";

/** What somebody does who can write the file: drops the triggers, and changes what he likes. */
export function tamper(file: string, sql: string): void {
  const raw = new DatabaseSync(file);
  for (const table of ["events", "streams", "types"]) {
    raw.exec(`DROP TRIGGER IF EXISTS ${table}_are_never_updated; DROP TRIGGER IF EXISTS ${table}_are_never_deleted`);
  }
  raw.exec(sql);
  raw.close();
}

/** What somebody does who knows the format: gives every event the hash that its present content wants. */
export function chainAnew(file: string): void {
  const raw = new DatabaseSync(file);
  const link = createLink();
  const rows = raw.prepare(
    `SELECT e.position, ${CANONICAL_SQL} AS canonical FROM events e JOIN streams s ON s.id = e.stream
     JOIN types t ON t.id = e.type ORDER BY e.position`,
  );
  const update = raw.prepare("UPDATE events SET hash = ? WHERE position = ?");
  raw.exec("BEGIN");
  let hash = GENESIS_HASH;
  for (const row of rows.all()) {
    hash = link(hash, String(row["canonical"]));
    update.run(hash, Number(row["position"]));
  }
  raw.exec("COMMIT");
  raw.close();
}
