import { existsSync } from "node:fs";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { setTimeout as wait } from "node:timers/promises";
import { createPrivateFile, rememberFiles } from "eventstore-lite/segments";
import { createSerialQueue } from "../platform/serial-queue.ts";
import { ServiceError } from "../platform/service-error.ts";
import { keyError } from "./derive-keys.ts";
import {
  createContents,
  toLabel,
  type SecretChanges,
  type SecretDatabase,
  type SecretPlace,
  type SecretRows,
  type NotesAndClaims,
} from "./secret-database.ts";

/**
 * Number for "rlsc" in the header of SQLite files that hold reachlog's secrets
 * (https://sqlite.org/pragma.html#pragma_application_id).
 */
const APPLICATION_ID = 0x726c_7363;
const FORMAT_VERSION = 3;

// SQLite keeps no write-ahead log, which would hold deleted secrets. With secure_delete their bytes are overwritten in
// the file itself.
const SETTINGS = `PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA; PRAGMA secure_delete=ON;
  PRAGMA trusted_schema=OFF`;

/**
 * Tables of secrets. SQLite leaves copies where it moves a row, as it does to keep a table sorted by name. So
 * ciphertexts are in a table that grows only at its end, where they never move and are overwritten in place.
 */
const TABLES = `
  -- One data key; more than one row only while the master key is exchanged.
  CREATE TABLE data_keys (
    id TEXT NOT NULL, master TEXT NOT NULL, wrapped BLOB NOT NULL, PRIMARY KEY (id, master)) STRICT;
  -- key: the id of the data key; slot: where the ciphertext is. Both are NULL for what is gone.
  CREATE TABLE secrets (
    name TEXT PRIMARY KEY, version INTEGER NOT NULL, key TEXT, slot INTEGER) STRICT, WITHOUT ROWID;
  CREATE TABLE ciphertexts (slot INTEGER PRIMARY KEY, ciphertext BLOB NOT NULL) STRICT;
  -- What may be used once, until when it is remembered (ms since the epoch).
  CREATE TABLE claims (name TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT;
  -- The number of changes to this database, and the log it belongs to: its id, its continuation, its place.
  CREATE TABLE label (
    one INTEGER PRIMARY KEY CHECK (one = 1), changes INTEGER NOT NULL, log TEXT, epoch TEXT, place TEXT) STRICT;
  INSERT INTO label (one, changes) VALUES (1, 0);
  CREATE TABLE notes (name TEXT PRIMARY KEY, note TEXT NOT NULL) STRICT;
  PRAGMA application_id=${APPLICATION_ID}; PRAGMA user_version=${FORMAT_VERSION}`;

/** Set of secrets in a separate SQLite file (mode 0600). */
export function sqliteSecrets(file: string): SecretPlace {
  return { name: file, isThere: async () => existsSync(file), open: () => openDatabase(file) };
}

async function openDatabase(file: string): Promise<SecretDatabase> {
  if (!existsSync(file)) createPrivateFile(file);
  const database = new DatabaseSync(file);
  try {
    await prepare(database, file);
    return databaseIn(database, file);
  } catch (fault) {
    database.close();
    throw fault;
  }
}

async function prepare(database: DatabaseSync, file: string): Promise<void> {
  const isNew = await whenFree(file, () => isEmpty(database, file));
  await whenFree(file, () => database.exec(SETTINGS));
  if (!isNew) return;
  await transact(database, file, async () => {
    // Another process may have created the tables first.
    if (isEmpty(database, file)) database.exec(TABLES);
  });
}

/**
 * True if the file has no tables yet. Throws a ServiceError (configuration) if the file holds no secrets, because it
 * may be the log.
 */
function isEmpty(database: DatabaseSync, file: string): boolean {
  const pragma = (name: string): unknown => database.prepare(`PRAGMA ${name}`).get()?.[name];
  const version = pragma("user_version");
  if (pragma("application_id") === APPLICATION_ID && version === FORMAT_VERSION) return false;
  if (database.prepare("SELECT 1 FROM sqlite_schema").get() === undefined && version === 0) return true;
  throw keyError(
    `${file} is not a key file, but a database of another program or of another version of reachlog: ` +
      "KEYS_FILE needs a separate file",
  );
}

function databaseIn(database: DatabaseSync, file: string): SecretDatabase {
  const oneByOne = createSerialQueue();
  const statements = createStatements(database);
  const { all, run } = statements;
  const rows = rowsIn(statements);
  const changes = { ...rows, ...changesIn(statements) };
  const others = notesAndClaimsIn(statements);
  const requireFile = createPlaceCheck(file);
  const countChanges = () => all<{ count: number }>("SELECT total_changes() AS count")[0]?.count;
  /**
   * Runs `work` while no transaction is in progress. All share one connection, so `work` would become part of the
   * transaction.
   */
  const alone = <Result>(work: () => Promise<Result>) => oneByOne(() => whenFree(file, work));
  const transactAlone: SecretDatabase["transact"] = (work) =>
    oneByOne(() =>
      transact(database, file, async () => {
        requireFile();
        const before = countChanges();
        const result = await work(changes);
        if (countChanges() !== before) run("UPDATE label SET changes = changes + 1");
        return result;
      }),
    );
  return {
    name: file,
    ...createContents(file, transactAlone),
    secrets: (names) => alone(() => rows.secrets(names)),
    names: (prefix) => alone(() => rows.names(prefix)),
    buried: (prefix) => alone(() => rows.buried(prefix)),
    dataKeys: () => alone(rows.dataKeys),
    async revision() {
      requireFile();
      return alone(rows.revision);
    },
    label: () => alone(rows.label),
    note: (wanted) => alone(() => others.note(wanted)),
    keepNote: (...given) => oneByOne(() => transact(database, file, () => others.keepNote(...given))),
    transact: transactAlone,
    claim: (...given) => oneByOne(() => transact(database, file, () => others.claim(...given))),
    isClaimed: (...given) => alone(() => others.isClaimed(...given)),
    [Symbol.asyncDispose]: () => oneByOne(async () => database.close()),
  };
}

/**
 * Returns a function that throws a ServiceError (full) once another file, or none, is at this path, because further
 * writes would be lost.
 */
function createPlaceCheck(file: string): () => void {
  const requireFiles = rememberFiles([file]);
  return () => {
    try {
      requireFiles();
    } catch (cause) {
      throw new ServiceError("full", String(cause instanceof Error ? cause.message : cause), { cause });
    }
  };
}

async function transact<Result>(database: DatabaseSync, file: string, work: () => Promise<Result>): Promise<Result> {
  try {
    await whenFree(file, () => database.exec("BEGIN IMMEDIATE"));
    const result = await work();
    await whenFree(file, () => database.exec("COMMIT"));
    return result;
  } catch (fault) {
    // A full disk has already ended the transaction.
    if (database.isTransaction) database.exec("ROLLBACK");
    const isOfSqlite = fault instanceof Error && "code" in fault && fault.code === "ERR_SQLITE_ERROR";
    throw isOfSqlite ? new ServiceError("full", `${file} cannot be written now`, { cause: fault }) : fault;
  }
}

/** Maximum time in ms to wait for another process that has locked the file of secrets. */
const BUSY_MS_MAX = 5_000;
/** Interval in ms between two attempts to get the lock. */
const BUSY_POLL_MS = 5;

/**
 * Repeats `work` until no other process locks the file. SQLite's own wait would block all of this process, including
 * the work that holds the lock.
 */
async function whenFree<Result>(file: string, work: () => Result | Promise<Result>): Promise<Result> {
  const giveUpAt = performance.now() + BUSY_MS_MAX;
  for (;;) {
    try {
      return await work();
    } catch (fault) {
      if (!isBusy(fault)) throw fault;
      if (performance.now() > giveUpAt)
        throw new ServiceError("busy", `${file} is locked by another process`, { cause: fault });
      await wait(BUSY_POLL_MS);
    }
  }
}

/** SQLite's error code for a locked file; it is the low byte of the extended codes. */
const SQLITE_BUSY = 5;

function isBusy(fault: unknown): boolean {
  if (!(fault instanceof Error)) return false;
  const code = "errcode" in fault ? fault.errcode : undefined;
  // Deno 2.9 gives no code if `exec` fails, so the message decides.
  return typeof code === "number" ? (code & 0xff) === SQLITE_BUSY : fault.message === "database is locked";
}

/** Character that sorts after every character of a secret's name, to end a range of names with the same prefix. */
const LAST = "\uffff";

/** Runs SQL statements; each text is prepared once. */
function createStatements(database: DatabaseSync) {
  const prepared = new Map<string, StatementSync>();
  const prepare = (query: string): StatementSync => {
    const statement = prepared.get(query) ?? database.prepare(query);
    prepared.set(query, statement);
    return statement;
  };
  return {
    all: <Row>(query: string, ...given: SQLInputValue[]) => prepare(query).all(...given) as Row[],
    /** Runs a statement; returns how many rows it changed. */
    run: (query: string, ...given: SQLInputValue[]): number => Number(prepare(query).run(...given).changes),
  };
}

type Statements = ReturnType<typeof createStatements>;

function rowsIn({ all }: Statements): SecretRows {
  const list = async (prefix: string, condition: string): Promise<readonly string[]> => {
    const query = `SELECT name FROM secrets WHERE name >= ? AND name < ? ${condition} ORDER BY name`;
    return all<{ name: string }>(query, prefix, prefix + LAST).map(({ name }) => name);
  };
  return {
    async secrets(names) {
      const query = `SELECT name, version, key, ciphertext FROM secrets LEFT JOIN ciphertexts USING (slot)
        WHERE name IN (SELECT value FROM json_each(?))`;
      return all(query, JSON.stringify(names));
    },
    names: (prefix) => list(prefix, ""),
    buried: (prefix) => list(prefix, "AND slot IS NULL"),
    dataKeys: async () => all("SELECT id, master, wrapped FROM data_keys"),
    revision: async () => Number(all<{ data_version: number }>("PRAGMA data_version")[0]?.data_version),
    label: async () => toLabel(all("SELECT changes, log, epoch, place FROM label")),
  };
}

function changesIn({ all, run }: Statements): Omit<SecretChanges, keyof SecretRows> {
  const append = (name: string, ciphertext: Uint8Array): void => {
    run("UPDATE secrets SET slot = (SELECT coalesce(max(slot), 0) + 1 FROM ciphertexts) WHERE name = ?", name);
    run("INSERT INTO ciphertexts (ciphertext) VALUES (?)", ciphertext);
  };
  const ownSlot = "slot = (SELECT slot FROM secrets WHERE name = ?)";
  const erase = (name: string): void =>
    void run(`UPDATE ciphertexts SET ciphertext = zeroblob(length(ciphertext)) WHERE ${ownSlot}`, name);
  /**
   * Replaces a secret's ciphertext, in place if both have the same length. Otherwise SQLite would move the row and
   * leave the old bytes, so they are overwritten with zeros, and the new ciphertext is appended.
   */
  const overwrite = (name: string, ciphertext: Uint8Array): void => {
    const query = `UPDATE ciphertexts SET ciphertext = ? WHERE ${ownSlot} AND length(ciphertext) = ?`;
    if (run(query, ciphertext, name, ciphertext.length) === 1) return;
    erase(name);
    append(name, ciphertext);
  };
  return {
    async add(secrets) {
      const query = "INSERT INTO secrets (name, version, key) VALUES (?, 1, ?) ON CONFLICT DO NOTHING";
      const added = secrets.filter(({ name, key }) => run(query, name, key) === 1);
      for (const { name, ciphertext } of added) append(name, ciphertext);
      return added.length;
    },
    async replace({ name, key, ciphertext }, expected) {
      const query = `UPDATE secrets SET version = version + 1, key = ?
        WHERE name = ? AND version = ? AND key IS NOT NULL`;
      const isReplaced = run(query, key, name, expected) === 1;
      if (isReplaced) overwrite(name, ciphertext);
      return isReplaced;
    },
    async reencrypt(secrets) {
      for (const { name, key, ciphertext } of secrets) {
        run("UPDATE secrets SET key = ? WHERE name = ?", key, name);
        overwrite(name, ciphertext);
      }
    },
    async remove(name) {
      erase(name);
      run("DELETE FROM secrets WHERE name = ?", name);
    },
    async bury(name) {
      erase(name);
      run("INSERT INTO secrets (name, version) VALUES (?, 0) ON CONFLICT DO UPDATE SET key = NULL, slot = NULL", name);
    },
    async addDataKey({ id, master, wrapped }) {
      run("INSERT INTO data_keys (id, master, wrapped) VALUES (?, ?, ?)", id, master, wrapped);
    },
    async removeDataKeys(master) {
      run("DELETE FROM data_keys WHERE master = coalesce(?, master)", master ?? null);
    },
    claims: async () => all("SELECT name, until FROM claims"),
    async relabel({ changes, binding }) {
      const { log = null, epoch = null, place = null } = binding ?? {};
      run("UPDATE label SET changes = ?, log = ?, epoch = ?, place = ?", changes, log, epoch, place);
    },
    async clear() {
      for (const table of ["data_keys", "secrets", "ciphertexts", "claims"]) run(`DELETE FROM ${table}`);
    },
    async insert(secrets, claims) {
      for (const { name, version, key, ciphertext } of secrets) {
        run("INSERT INTO secrets (name, version, key) VALUES (?, ?, ?)", name, version, key);
        if (ciphertext !== null) append(name, ciphertext);
      }
      for (const { name, until } of claims) run("INSERT INTO claims (name, until) VALUES (?, ?)", name, until);
    },
  };
}

function notesAndClaimsIn({ all, run }: Statements): NotesAndClaims {
  return {
    note: async (name) => all<{ note: string }>("SELECT note FROM notes WHERE name = ?", name)[0]?.note,
    async keepNote(name, text) {
      const query = "INSERT INTO notes (name, note) VALUES (?, ?) ON CONFLICT DO UPDATE SET note = excluded.note";
      if (text === undefined) run("DELETE FROM notes WHERE name = ?", name);
      else run(query, name, text);
    },
    async claim(name, until, now) {
      // Removes expired claims, so that a flood of claims cannot fill the disk.
      run("DELETE FROM claims WHERE until <= ?", now);
      return run("INSERT INTO claims (name, until) VALUES (?, ?) ON CONFLICT DO NOTHING", name, until) === 1;
    },
    isClaimed: async (name, now) => all("SELECT 1 FROM claims WHERE name = ? AND until > ?", name, now).length > 0,
  };
}
