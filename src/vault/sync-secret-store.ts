import type { DatabaseSync } from "node:sqlite";
import { makeDataKey, unwrap, wrap, type DataKey } from "./data-key.ts";
import { encrypt, open } from "./encrypt.ts";
import { ServiceError } from "../platform/service-error.ts";
import { damaged, KeyMismatch } from "./error.ts";
import { keyId } from "./key.ts";
import { openSecretDatabase, statementsOf, transact, type Row } from "./sync-secret-database.ts";
import type { Kept } from "./secret-store.ts";

/**
 * Secrets by name, encrypted at rest with a data key, which the master key wraps. What is deleted leaves no bytes behind.
 * All methods throw {@link KeyMismatch} once another process has exchanged the master key, and a
 * ServiceError: damaged, or full where nothing can be written.
 */
export interface SecretStore extends Disposable {
  /** `gone`: it was here and was deleted for ever. */
  get(name: string): Kept | "gone" | undefined;
  /** As {@link get} for many at once, those of them that are or were here: one by one costs five times as much. */
  getAll(names: readonly string[]): ReadonlyMap<string, Kept | "gone">;
  /** All names that begin so, in order; also of what is gone. */
  names(prefix: string): readonly string[];
  /** Stores durably. False when the secret is no longer at `expected` (0: absent): somebody else was first. */
  put(name: string, value: string, expected: number): boolean;
  remove(name: string): void;
  /** Deletes the secret; the name never gets another one. */
  bury(name: string): void;
  /** False when `name` was claimed before and is still remembered. Times are ms since the epoch. */
  claim(name: string, until: number, now: number): boolean;
  isClaimed(name: string, now: number): boolean;
  /** Does all of `work` or nothing of it, durably, while no other process changes anything. */
  change<Result>(work: () => Result): Result;
  /** Another number once another process has changed something. */
  revision(): number;
  /**
   * Encrypts everything anew, so that these master keys open it and no others. The data key is new too: whoever has a
   * former master key and an old copy opens nothing that is written from now on.
   */
  rewrap(masters: readonly Uint8Array[]): void;
  /** This master key opens nothing any more. */
  revoke(master: Uint8Array): void;
}

export interface SecretStoreOptions {
  readonly file: string;
  /** The master key in force. */
  readonly master: Uint8Array;
  /** Asked for the master key anew where it opens nothing: another process may have exchanged it. */
  readonly renew?: (() => Uint8Array) | undefined;
}

/** Opens the store, or makes it (mode 0600). Throws KeyMismatch and other ServiceErrors; nothing is changed then. */
export function openSecretStore(options: SecretStoreOptions): SecretStore {
  const { file, master } = options;
  const database = openSecretDatabase(file, (made) => keep(made, makeDataKey(), master));
  try {
    return storeIn(database, options);
  } catch (fault) {
    database.close();
    throw fault;
  }
}

function storeIn(database: DatabaseSync, { file, master, renew }: SecretStoreOptions): SecretStore {
  const rows = statementsOf(database);
  const unwrapped = (): DataKey => {
    try {
      return unwrap(rows.dataKeys(), master, file);
    } catch (fault) {
      // Not while anything is locked: whoever gives the key may have to finish the exchange in this file.
      if (!(fault instanceof KeyMismatch) || renew === undefined || database.isTransaction) throw fault;
      return unwrap(rows.dataKeys(), renew(), file);
    }
  };
  let known = unwrapped();

  const change = <Result>(work: () => Result): Result => {
    if (database.isTransaction) return work();
    return written(file, () => {
      // A rotation by another process is seen before, or under the lock: then it is tried once more.
      if (rows.keyId() !== known.id) known = unwrapped();
      const done = transact(database, () => (rows.keyId() === known.id ? { result: work() } : undefined));
      return done === undefined ? change(work) : done.result;
    });
  };
  const opened = (name: string, row: Row): Kept | "gone" => {
    if (row.ciphertext === null) return "gone";
    if (row.key !== known.id) known = unwrapped();
    const value =
      row.key === known.id ? open(known.bytes, row.ciphertext, contextOf(known, name, row.version)) : undefined;
    if (value === undefined) throw damaged(file, name);
    return { version: row.version, value };
  };
  const get = (name: string): Kept | "gone" | undefined => {
    const row = rows.select(name);
    return row && opened(name, row);
  };
  const encrypted = (key: DataKey, name: string, { version, value }: Kept): Uint8Array =>
    encrypt(key.bytes, value, contextOf(key, name, version));

  return {
    get,
    getAll: (names) => new Map(rows.selectAll(names).map((row) => [row.name, opened(row.name, row)])),
    names: rows.names,
    put: (name, value, expected) =>
      change(() => rows.put(name, known.id, encrypted(known, name, { version: expected + 1, value }), expected)),
    remove: (name) => change(() => rows.remove(name)),
    bury: (name) => change(() => rows.bury(name)),
    claim: (name, until, now) => change(() => rows.claim(name, until, now)),
    isClaimed: rows.isClaimed,
    change,
    revision: rows.revision,
    rewrap(masters) {
      change(() => {
        const key = makeDataKey();
        for (const name of rows.names("")) {
          const kept = get(name);
          if (kept !== undefined && kept !== "gone") rows.reencrypt(key.id, encrypted(key, name, kept), name);
        }
        database.exec("DELETE FROM data_keys");
        for (const one of masters) keep(database, key, one);
        known = key;
      });
    },
    revoke: (one) => change(() => rows.revoke(keyId(one))),
    [Symbol.dispose]() {
      database.close();
    },
  };
}

function keep(database: DatabaseSync, key: DataKey, master: Uint8Array): void {
  const { id, master: by, wrapped } = wrap(key, master);
  database.prepare("INSERT INTO data_keys (id, master, wrapped) VALUES (?, ?, ?)").run(id, by, wrapped);
}

/** All labels of a row are authenticated, so neither another's row nor an older one of the same name opens. */
function contextOf({ id }: DataKey, name: string, version: number): string {
  return `${id}|${version}|${name}`;
}

/** For want of space, say: nothing was stored, so nothing was encrypted and appended. */
function written<Result>(file: string, work: () => Result): Result {
  try {
    return work();
  } catch (fault) {
    const isOfSqlite = fault instanceof Error && "code" in fault && fault.code === "ERR_SQLITE_ERROR";
    throw isOfSqlite ? new ServiceError("full", `${file} cannot be written now`, { cause: fault }) : fault;
  }
}
