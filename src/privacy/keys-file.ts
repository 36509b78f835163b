import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { deriveKey, keyId, KEY_BYTES } from "../vault/key.ts";
import { open, encrypt } from "../vault/encrypt.ts";
import { transact } from "../vault/transact.ts";
import { ServiceError } from "../platform/service-error.ts";

/** The keys of personal data: each wrapped with one derived from the master key, and gone for good once deleted. */
export interface KeysFile extends Disposable {
  /** Names the file in what is sealed with its keys. */
  readonly id: string;
  /** `gone`: it was here and was deleted for ever. */
  get(ref: string): Uint8Array | "gone" | undefined;
  /** The first ref that begins so; undefined: none does. */
  first(prefix: string): string | undefined;
  /** All keys whose refs begin so. */
  under(prefix: string): readonly (readonly [string, Uint8Array])[];
  /** All refs that begin so, also of keys that are gone. */
  refs(prefix: string): readonly string[];
  put(ref: string, key: Uint8Array): void;
  /** Deletes the key; the ref never gets another one. */
  bury(ref: string): void;
  /** Deletes the key and its ref. */
  remove(ref: string): void;
  /** Another number once another process has changed the file. */
  version(): number;
  /** Does all of `work` or nothing of it, durably, while no other process changes the file. */
  change<Result>(work: () => Result): Result;
  /** Wraps all keys with another master key. */
  rewrap(master: Uint8Array): void;
}

/** The keys were wrapped with another master key. */
export class KeysFileMismatch extends ServiceError {
  override readonly name = "KeysFileMismatch";
  constructor(file: string) {
    super(
      "configuration",
      `${file} belongs to another master key: give the one it was made with (REACHLOG_KEY or the key file)`,
    );
  }
}

/** Wait for another process that changes the keys at the same moment. */
const BUSY_TIMEOUT_MS = 5_000;

/** Bytes of a file's id: enough to tell the few files apart that one log ever has. */
const ID_BYTES = 4;

// No write-ahead log: it would keep what was deleted. With secure_delete the bytes are overwritten in the file itself.
const SETTINGS = `PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA;
  PRAGMA secure_delete=ON; PRAGMA trusted_schema=OFF;`;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS file (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, wrapper TEXT NOT NULL) STRICT;
  CREATE TABLE IF NOT EXISTS keys (ref TEXT PRIMARY KEY, wrapper TEXT, wrapped BLOB) STRICT, WITHOUT ROWID;`;

/**
 * Opens the file, or makes it (mode 0600). `master` gives the master key in force, asked anew where another process may
 * have exchanged it. Throws {@link KeysFileMismatch}, and a ServiceError (configuration) for another database; nothing is changed then.
 */
export function openKeysFile(file: string, master: () => Uint8Array): KeysFile {
  mkdirSync(dirname(file), { recursive: true });
  makePrivate(file);
  const database = new DatabaseSync(file);
  try {
    database.exec(`PRAGMA busy_timeout=${BUSY_TIMEOUT_MS}`);
    const tables = database.prepare("SELECT name FROM sqlite_schema").all();
    if (tables.length > 0 && tables.every(({ name }) => name !== "keys")) throw noKeysFile(file);
    database.exec(SETTINGS + SCHEMA);
    database
      .prepare("INSERT INTO file (one, id, wrapper) VALUES (1, ?, ?) ON CONFLICT DO NOTHING")
      .run(randomBytes(ID_BYTES).toString("hex"), keyId(master()));
    const { id, wrapper } = database.prepare("SELECT id, wrapper FROM file").get() as Record<string, string>;
    if (id === undefined || wrapper !== keyId(master())) throw new KeysFileMismatch(file);
    return keysIn(database, file, id, master);
  } catch (fault) {
    database.close();
    throw fault;
  }
}

/** An existing file is not opened here: closing it would drop SQLite's locks. */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, "wx", 0o600));
  } catch (fault) {
    if (!(fault instanceof Error && "code" in fault && fault.code === "EEXIST")) throw fault;
  }
}

interface Row {
  readonly ref: string;
  readonly wrapper: string | null;
  readonly wrapped: Uint8Array | null;
}

function keysIn(database: DatabaseSync, file: string, id: string, master: () => Uint8Array): KeysFile {
  let wrapping = wrapperOf(master());
  const one = database.prepare("SELECT ref, wrapper, wrapped FROM keys WHERE ref = ?");
  const range = database.prepare("SELECT ref, wrapper, wrapped FROM keys WHERE ref >= ? AND ref < ? ORDER BY ref");
  const upsert = database.prepare(
    "INSERT INTO keys (ref, wrapper, wrapped) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET wrapper = excluded.wrapper, wrapped = excluded.wrapped",
  );
  const version = database.prepare("PRAGMA data_version");
  const remove = database.prepare("DELETE FROM keys WHERE ref = ?");
  const wrappedBy = database.prepare("SELECT wrapper FROM file");
  const rows = (prefix: string) => range.all(prefix, prefix + LAST) as unknown as readonly Row[];

  const unwrap = ({ ref, wrapper, wrapped }: Row): Uint8Array | "gone" => {
    if (wrapped === null) return "gone";
    if (wrapper !== wrapping.id) wrapping = wrapperOf(master());
    const text = wrapper === wrapping.id ? open(wrapping.key, wrapped, ref) : undefined;
    if (text === undefined) throw new KeysFileMismatch(file);
    return Buffer.from(text, "base64");
  };
  const isWrapping = (): boolean => wrappedBy.get()?.["wrapper"] === wrapping.id;
  /** Undefined: another process has exchanged the master key, and what is written has to open with the one in force. */
  const attempt = <Result>(work: () => Result): { readonly result: Result } | undefined =>
    transact(database, () => (isWrapping() ? { result: work() } : undefined));
  const change = <Result>(work: () => Result): Result => {
    if (database.isTransaction) return work();
    return written(file, () => {
      const done = attempt(work);
      if (done !== undefined) return done.result;
      // Asked for while nothing is locked: whoever gives it may have to finish the exchange in this file.
      wrapping = wrapperOf(master());
      const again = attempt(work);
      if (again === undefined) throw new KeysFileMismatch(file);
      return again.result;
    });
  };
  const put = (ref: string, key: Uint8Array): void => {
    change(() => void upsert.run(ref, wrapping.id, encrypt(wrapping.key, Buffer.from(key).toString("base64"), ref)));
  };

  return {
    id,
    get(ref) {
      const row = one.get(ref) as Row | undefined;
      return row === undefined ? undefined : unwrap(row);
    },
    first: (prefix) => rows(prefix)[0]?.ref,
    refs: (prefix) => rows(prefix).map(({ ref }) => ref),
    under: (prefix) =>
      rows(prefix).flatMap((row): [string, Uint8Array][] => {
        const key = unwrap(row);
        return key === "gone" ? [] : [[row.ref, key]];
      }),
    put,
    bury: (ref) => void upsert.run(ref, null, null),
    remove: (ref) => void remove.run(ref),
    version: () => Number(version.get()?.["data_version"]),
    change,
    rewrap(next) {
      change(() => {
        const keys = rows("").flatMap((row) => {
          const key = unwrap(row);
          return key === "gone" ? [] : [[row.ref, key] as const];
        });
        wrapping = wrapperOf(next);
        for (const [ref, key] of keys) put(ref, key);
        database.prepare("UPDATE file SET wrapper = ?").run(wrapping.id);
      });
    },
    [Symbol.dispose]() {
      database.close();
    },
  };
}

/** Tells a fault of the database as what it means to whoever seals. */
function written<Result>(file: string, work: () => Result): Result {
  try {
    return work();
  } catch (fault) {
    const isOfSqlite = fault instanceof Error && "code" in fault && fault.code === "ERR_SQLITE_ERROR";
    // For want of space, say: nothing was encrypted, so nothing was appended.
    throw isOfSqlite ? new ServiceError("full", `${file} cannot be written now`, { cause: fault }) : fault;
  }
}

/** A database that is none of ours is not made one: it may be the log. */
function noKeysFile(file: string): ServiceError {
  const remedy = "KEYS_FILE wants a file of its own";
  return new ServiceError("configuration", `${file} is no key file, but a database of something else: ${remedy}`);
}

/** Behind every character of a ref. */
const LAST = "\uffff";

function wrapperOf(master: Uint8Array) {
  return { id: keyId(master), key: deriveKey(master, "personal-keys") };
}

/** A key of its own. */
export function newKey(): Uint8Array {
  return randomBytes(KEY_BYTES);
}
