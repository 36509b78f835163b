import { existsSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { setTimeout as wait } from "node:timers/promises";
import { createPrivateFile } from "eventstore-lite";
import { createSerialQueue } from "../platform/serial-queue.ts";
import { ServiceError } from "../platform/service-error.ts";
import { keyError } from "./key.ts";
import {
  type Binding,
  type Claim,
  type SecretChanges,
  type SecretDatabase,
  type SecretPlace,
  type SecretRow,
  type SecretRows,
  type WrappedKey,
  createContents,
} from "./secret-database.ts";

/** "rlsc": marks the file as ours (https://sqlite.org/pragma.html#pragma_application_id). */
const APPLICATION_ID = 0x726c_7363;
const FORMAT_VERSION = 2;

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
  -- How often something was changed, and which log it belongs to (its id, its continuation, where it is).
  CREATE TABLE label (
    one INTEGER PRIMARY KEY CHECK (one = 1), changes INTEGER NOT NULL, log TEXT, epoch TEXT, place TEXT) STRICT;
  INSERT INTO label (one, changes) VALUES (1, 0);
  CREATE TABLE notes (name TEXT PRIMARY KEY, note TEXT NOT NULL) STRICT;
  PRAGMA application_id=${APPLICATION_ID}; PRAGMA user_version=${FORMAT_VERSION}`;

/** Secrets in a file of their own (mode 0600). */
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
    // Another process may have been first.
    if (isEmpty(database, file)) database.exec(TABLES);
  });
}

/** Throws a ServiceError (configuration) on what is not ours: it may be the log. */
function isEmpty(database: DatabaseSync, file: string): boolean {
  const pragma = (name: string): unknown => database.prepare(`PRAGMA ${name}`).get()?.[name];
  const version = pragma("user_version");
  if (pragma("application_id") === APPLICATION_ID && version === FORMAT_VERSION) return false;
  if (database.prepare("SELECT 1 FROM sqlite_schema").get() === undefined && version === 0) return true;
  throw keyError(
    `${file} is no key file, but a database of something else or of another version of reachlog: ` +
      "KEYS_FILE needs a file of its own",
  );
}

function databaseIn(database: DatabaseSync, file: string): SecretDatabase {
  const oneByOne = createSerialQueue();
  const rows = rowsIn(database);
  const changes = changesIn(database, rows);
  const claims = claimsIn(database);
  const notes = notesIn(database);
  const countUp = database.prepare("UPDATE label SET changes = changes + 1");
  const changed = database.prepare("SELECT total_changes() AS changed");
  /** Outside of a transaction: all have one connection, so this would become a part of it. */
  const alone = <Result>(work: () => Promise<Result>) => oneByOne(() => whenFree(file, work));
  const transactAlone: SecretDatabase["transact"] = (work) =>
    oneByOne(() =>
      transact(database, file, async () => {
        const before = changed.get()?.["changed"];
        const result = await work(changes);
        if (changed.get()?.["changed"] !== before) countUp.run();
        return result;
      }),
    );
  return {
    name: file,
    ...createContents({ name: file, transact: transactAlone }),
    secrets: (names) => alone(() => rows.secrets(names)),
    names: (prefix) => alone(() => rows.names(prefix)),
    buried: (prefix) => alone(() => rows.buried(prefix)),
    dataKeys: () => alone(rows.dataKeys),
    revision: () => alone(rows.revision),
    label: () => alone(rows.label),
    note: (wanted) => alone(() => notes.note(wanted)),
    keepNote: (...given) => oneByOne(() => transact(database, file, () => notes.keepNote(...given))),
    transact: transactAlone,
    claim: (...given) => oneByOne(() => transact(database, file, () => claims.claim(...given))),
    isClaimed: (...given) => alone(() => claims.isClaimed(...given)),
    [Symbol.asyncDispose]: () => oneByOne(async () => database.close()),
  };
}

async function transact<Result>(database: DatabaseSync, file: string, work: () => Promise<Result>): Promise<Result> {
  try {
    await whenFree(file, () => database.exec("BEGIN IMMEDIATE"));
    const result = await work();
    await whenFree(file, () => database.exec("COMMIT"));
    return result;
  } catch (fault) {
    // A full disk has ended it already.
    if (database.isTransaction) database.exec("ROLLBACK");
    const isOfSqlite = fault instanceof Error && "code" in fault && fault.code === "ERR_SQLITE_ERROR";
    throw isOfSqlite ? new ServiceError("full", `${file} cannot be written now`, { cause: fault }) : fault;
  }
}

/** How long it is waited for another process that has the file locked, and how often it is tried. */
const BUSY_MS_MAX = 5_000;
const BUSY_POLL_MS = 5;

/** SQLite would wait inside of a call, and let nothing else of this process go on: not even what has the lock. */
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

/** The low byte of an extended code is the primary one. */
const SQLITE_BUSY = 5;

function isBusy(fault: unknown): boolean {
  if (!(fault instanceof Error)) return false;
  const code = "errcode" in fault ? fault.errcode : undefined;
  // Deno 2.9 gives no code where `exec` fails.
  return typeof code === "number" ? (code & 0xff) === SQLITE_BUSY : fault.message === "database is locked";
}

/** Behind every character of a name. */
const LAST = "\uffff";

/** What is asked of the tables, one statement each. */
function rowsIn(database: DatabaseSync): SecretRows {
  const one = database.prepare("SELECT name, version, key, ciphertext FROM secrets WHERE name = ?");
  const some = database.prepare(
    "SELECT name, version, key, ciphertext FROM secrets WHERE name IN (SELECT value FROM json_each(?))",
  );
  const range = database.prepare("SELECT name FROM secrets WHERE name >= ? AND name < ? ORDER BY name");
  const buried = database.prepare(
    "SELECT name FROM secrets WHERE name >= ? AND name < ? AND ciphertext IS NULL ORDER BY name",
  );
  const namesBy = (statement: StatementSync, prefix: string): readonly string[] =>
    (statement.all(prefix, prefix + LAST) as { name: string }[]).map(({ name }) => name);
  const keys = database.prepare("SELECT id, master, wrapped FROM data_keys");
  const revision = database.prepare("PRAGMA data_version");
  const label = database.prepare("SELECT changes, log, epoch, place FROM label");
  return {
    secrets: async (names) => {
      const found = names.length === 1 ? one.all(names[0] ?? "") : some.all(JSON.stringify(names));
      return found as unknown as readonly SecretRow[];
    },
    names: async (prefix) => namesBy(range, prefix),
    buried: async (prefix) => namesBy(buried, prefix),
    dataKeys: async () => keys.all() as unknown as readonly WrappedKey[],
    revision: async () => Number(revision.get()?.["data_version"]),
    async label() {
      const { changes, log, ...rest } = label.get() as unknown as LabelRow;
      return { changes, binding: log === null ? undefined : { log, ...rest } };
    },
  };
}

interface LabelRow extends Omit<Binding, "log"> {
  readonly changes: number;
  readonly log: string | null;
}

function changesIn(database: DatabaseSync, rows: SecretRows): SecretChanges {
  const insert = database.prepare(
    "INSERT INTO secrets (name, version, key, ciphertext) VALUES (?, 1, ?, ?) ON CONFLICT DO NOTHING",
  );
  const update = database.prepare(
    "UPDATE secrets SET version = version + 1, key = ?, ciphertext = ? WHERE name = ? AND version = ? AND key IS NOT NULL",
  );
  const bury = database.prepare(
    "INSERT INTO secrets (name, version) VALUES (?, 0) ON CONFLICT DO UPDATE SET key = NULL, ciphertext = NULL",
  );
  const reencrypt = database.prepare("UPDATE secrets SET key = ?, ciphertext = ? WHERE name = ?");
  const remove = database.prepare("DELETE FROM secrets WHERE name = ?");
  const addKey = database.prepare("INSERT INTO data_keys (id, master, wrapped) VALUES (?, ?, ?)");
  const removeKeys = database.prepare("DELETE FROM data_keys WHERE master = coalesce(?, master)");
  const claims = database.prepare("SELECT name, until FROM claims");
  const insertRow = database.prepare("INSERT INTO secrets (name, version, key, ciphertext) VALUES (?, ?, ?, ?)");
  const relabel = database.prepare("UPDATE label SET changes = ?, log = ?, epoch = ?, place = ?");
  const insertClaim = database.prepare("INSERT INTO claims (name, until) VALUES (?, ?)");
  return {
    ...rows,
    async add(secrets) {
      let added = 0;
      for (const { name, key, ciphertext } of secrets) added += Number(insert.run(name, key, ciphertext).changes);
      return added;
    },
    replace: async ({ name, key, ciphertext }, expected) =>
      Number(update.run(key, ciphertext, name, expected).changes) === 1,
    async reencrypt(secrets) {
      for (const { name, key, ciphertext } of secrets) reencrypt.run(key, ciphertext, name);
    },
    remove: async (name) => void remove.run(name),
    bury: async (name) => void bury.run(name),
    addDataKey: async ({ id, master, wrapped }) => void addKey.run(id, master, wrapped),
    removeDataKeys: async (master) => void removeKeys.run(master ?? null),
    claims: async () => claims.all() as unknown as readonly Claim[],
    relabel: async ({ changes, binding }) =>
      void relabel.run(changes, binding?.log ?? null, binding?.epoch ?? null, binding?.place ?? null),
    clear: async () => database.exec("DELETE FROM data_keys; DELETE FROM secrets; DELETE FROM claims"),
    async insert(secrets, claimed) {
      for (const { name, version, key, ciphertext } of secrets) insertRow.run(name, version, key, ciphertext);
      for (const { name, until } of claimed) insertClaim.run(name, until);
    },
  };
}

function notesIn(database: DatabaseSync): Pick<SecretDatabase, "note" | "keepNote"> {
  const load = database.prepare("SELECT note FROM notes WHERE name = ?");
  const save = database.prepare(
    "INSERT INTO notes (name, note) VALUES (?, ?) ON CONFLICT DO UPDATE SET note = excluded.note",
  );
  const remove = database.prepare("DELETE FROM notes WHERE name = ?");
  return {
    note: async (name) => load.get(name)?.["note"] as string | undefined,
    async keepNote(name, text) {
      if (text === undefined) remove.run(name);
      else save.run(name, text);
    },
  };
}

function claimsIn(database: DatabaseSync): Pick<SecretDatabase, "claim" | "isClaimed"> {
  const forget = database.prepare("DELETE FROM claims WHERE until <= ?");
  const claim = database.prepare("INSERT INTO claims (name, until) VALUES (?, ?) ON CONFLICT DO NOTHING");
  const claimed = database.prepare("SELECT 1 FROM claims WHERE name = ? AND until > ?");
  return {
    async claim(name, until, now) {
      // A flood of them cannot fill the disk.
      forget.run(now);
      return Number(claim.run(name, until).changes) === 1;
    },
    isClaimed: async (name, now) => claimed.get(name, now) !== undefined,
  };
}
