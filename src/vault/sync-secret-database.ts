import { closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { keyError } from "./error.ts";
import type { WrappedKey } from "./secret-database.ts";

/** Wait for another process that changes the file at the same moment. */
const BUSY_TIMEOUT_MS = 5_000;

/** "rlsc": marks the file as ours (https://sqlite.org/pragma.html#pragma_application_id). */
const APPLICATION_ID = 0x726c_7363;
const FORMAT_VERSION = 1;

// No write-ahead log: it would keep what was deleted. With secure_delete the bytes are overwritten in the file itself.
const SETTINGS = `PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA; PRAGMA secure_delete=ON;
  PRAGMA trusted_schema=OFF`;

const TABLES = `
  -- One data key; more than one row only while the master key is exchanged.
  CREATE TABLE data_keys (
    id TEXT NOT NULL, master TEXT NOT NULL, wrapped BLOB NOT NULL, PRIMARY KEY (id, master)) STRICT;
  -- key: the id of the data key; ciphertext: NULL for what is gone
  CREATE TABLE secrets (
    name TEXT PRIMARY KEY, version INTEGER NOT NULL, key TEXT, ciphertext BLOB) STRICT, WITHOUT ROWID;
  -- What may be used once, until when it is remembered (ms since the epoch).
  CREATE TABLE claims (name TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT;
  PRAGMA application_id=${APPLICATION_ID}; PRAGMA user_version=${FORMAT_VERSION}`;

/** Opens the database, or makes it (mode 0600) and has `fill` complete it. Throws a ServiceError (configuration) on what is not ours. */
export function openSecretDatabase(file: string, fill: (database: DatabaseSync) => void): DatabaseSync {
  mkdirSync(dirname(file), { recursive: true });
  makePrivate(file);
  const database = new DatabaseSync(file);
  try {
    database.exec(`PRAGMA busy_timeout=${BUSY_TIMEOUT_MS}`);
    if (!isEmpty(database, file)) database.exec(SETTINGS);
    else {
      database.exec(SETTINGS);
      transact(database, () => {
        // Another process may have been first.
        if (!isEmpty(database, file)) return;
        database.exec(TABLES);
        fill(database);
      });
    }
    return database;
  } catch (fault) {
    database.close();
    throw fault;
  }
}

/** An existing file is not opened here: closing it would drop SQLite's locks. */
function makePrivate(file: string): void {
  if (existsSync(file)) return;
  try {
    closeSync(openSync(file, "wx", 0o600));
  } catch (fault) {
    // Another process was first.
    if (!(fault instanceof Error && "code" in fault && fault.code === "EEXIST")) throw fault;
  }
}

/** Throws a ServiceError (configuration) on what is not ours: it may be the log. */
function isEmpty(database: DatabaseSync, file: string): boolean {
  const pragma = (name: string): unknown => database.prepare(`PRAGMA ${name}`).get()?.[name];
  const version = pragma("user_version");
  if (pragma("application_id") === APPLICATION_ID && version === FORMAT_VERSION) return false;
  if (database.prepare("SELECT 1 FROM sqlite_schema").get() === undefined && version === 0) return true;
  throw keyError(
    `${file} is no key file, but a database of something else or of another version of reachlog: ` +
      "KEYS_FILE wants a file of its own",
  );
}

/** All of `work`, or nothing of it; nobody else writes meanwhile. */
export function transact<Result>(database: DatabaseSync, work: () => Result): Result {
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    database.exec("COMMIT");
    return result;
  } catch (fault) {
    // A full disk has ended it already.
    if (database.isTransaction) database.exec("ROLLBACK");
    throw fault;
  }
}

export interface Row {
  readonly version: number;
  readonly key: string | null;
  readonly ciphertext: Uint8Array | null;
}

/** Behind every character of a name. */
const LAST = "\uffff";

/** What is asked of the tables, one statement each. */
export function statementsOf(database: DatabaseSync) {
  const select = database.prepare("SELECT version, key, ciphertext FROM secrets WHERE name = ?");
  const some = database.prepare(
    "SELECT name, version, key, ciphertext FROM secrets WHERE name IN (SELECT value FROM json_each(?))",
  );
  const range = database.prepare("SELECT name FROM secrets WHERE name >= ? AND name < ? ORDER BY name");
  const keys = database.prepare("SELECT id, master, wrapped FROM data_keys");
  const key = database.prepare("SELECT id FROM data_keys LIMIT 1");
  const insert = database.prepare(
    "INSERT INTO secrets (name, version, key, ciphertext) VALUES (?, 1, ?, ?) ON CONFLICT DO NOTHING",
  );
  const update = database.prepare(
    "UPDATE secrets SET version = version + 1, key = ?, ciphertext = ? WHERE name = ? AND version = ?",
  );
  const bury = database.prepare(
    "INSERT INTO secrets (name, version) VALUES (?, 0) ON CONFLICT DO UPDATE SET key = NULL, ciphertext = NULL",
  );
  const reencrypt = database.prepare("UPDATE secrets SET key = ?, ciphertext = ? WHERE name = ?");
  const remove = database.prepare("DELETE FROM secrets WHERE name = ?");
  const revoke = database.prepare("DELETE FROM data_keys WHERE master = ?");
  const forgetClaims = database.prepare("DELETE FROM claims WHERE until <= ?");
  const claimed = database.prepare("SELECT 1 FROM claims WHERE name = ? AND until > ?");
  const claim = database.prepare("INSERT INTO claims (name, until) VALUES (?, ?) ON CONFLICT DO NOTHING");
  const revision = database.prepare("PRAGMA data_version");
  return {
    select: (name: string) => select.get(name) as Row | undefined,
    selectAll: (names: readonly string[]) =>
      some.all(JSON.stringify(names)) as unknown as readonly (Row & { readonly name: string })[],
    names: (prefix: string) => (range.all(prefix, prefix + LAST) as { name: string }[]).map(({ name }) => name),
    dataKeys: () => keys.all() as unknown as readonly WrappedKey[],
    keyId: () => (key.get() as { id: string } | undefined)?.id,
    put: (name: string, id: string, ciphertext: Uint8Array, expected: number) =>
      Number(
        (expected === 0 ? insert.run(name, id, ciphertext) : update.run(id, ciphertext, name, expected)).changes,
      ) === 1,
    bury: (name: string) => void bury.run(name),
    reencrypt: (id: string, ciphertext: Uint8Array, name: string) => void reencrypt.run(id, ciphertext, name),
    remove: (name: string) => void remove.run(name),
    revoke: (master: string) => void revoke.run(master),
    isClaimed: (name: string, now: number) => claimed.get(name, now) !== undefined,
    claim(name: string, until: number, now: number): boolean {
      forgetClaims.run(now);
      return Number(claim.run(name, until).changes) === 1;
    },
    revision: () => Number(revision.get()?.["data_version"]),
  };
}
