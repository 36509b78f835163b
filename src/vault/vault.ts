import type { DatabaseSync } from "node:sqlite";
import { makeDataKey, unwrap, wrap, type DataKey } from "./data-key.ts";
import { keyId } from "./key.ts";
import { decryptRow, encryptRow } from "./secret-row.ts";
import { transact } from "./transact.ts";
import { vaultDamaged } from "./vault-error.ts";
import { openVaultFile } from "./vault-file.ts";
import { ServiceError } from "../platform/service-error.ts";

/** A secret and the version to name when it is replaced. */
export interface Kept {
  readonly version: number;
  readonly value: string;
}

/** A master key that takes another one's place. */
export interface Rotation {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
}

/** Secrets by name, of which each change has a version. */
export interface Secrets {
  get(name: string): Kept | undefined;
  /** Stores durably. False when the secret is no longer at `expected` (0: absent): somebody else was first. */
  put(name: string, value: string, expected: number): boolean;
  delete(name: string): void;
}

/** Where tokens live: encrypted at rest, apart from the log, so that no event ever holds one. */
export interface Vault extends Secrets, Disposable {
  /** False when `name` was claimed before and is still remembered. Times are ms since the epoch. */
  claim(name: string, until: number, now: number): boolean;
  isClaimed(name: string, now: number): boolean;
  /**
   * Seals everything anew; until {@link Vault.endRotation} both master keys open it, and it knows both. Throws KeyError
   * beside a rotation to another key.
   */
  beginRotation(to: Uint8Array): void;
  /** The rotation that was begun and is not ended. */
  rotation(): Rotation | undefined;
  /** From now on only the new master key opens the vault. */
  endRotation(): void;
}

/** The secret that holds both master keys while one takes the other's place. */
const ROTATION = "rotation";

/** Opens or makes the vault file. Throws VaultKeyMismatch, VaultDamaged and KeyError; nothing is overwritten then. */
export function openVault(file: string, master: Uint8Array): Vault {
  const database = openVaultFile(file, master);
  try {
    return vaultIn(database, master, file);
  } catch (fault) {
    database.close();
    throw fault;
  }
}

function vaultIn(database: DatabaseSync, master: Uint8Array, file: string): Vault {
  const rows = statementsOf(database);
  let known = unwrap(database, master, file);

  /** Another process may have exchanged the keys since this one opened the vault. */
  const keyNamed = (id: string): DataKey => {
    if (known.id !== id) known = unwrap(database, master, file);
    if (known.id !== id) throw vaultDamaged(file, `a row of the data key ${id}`);
    return known;
  };
  const currentKey = (): DataKey => keyNamed(rows.keyId());

  const get = (name: string): Kept | undefined => {
    const row = rows.select(name);
    if (row === undefined) return undefined;
    const value = decryptRow(keyNamed(row.key), name, row.version, row.sealed);
    if (value === undefined) throw vaultDamaged(file, name);
    return { version: row.version, value };
  };
  const store = (key: DataKey, name: string, value: string, expected: number): boolean => {
    const sealed = encryptRow(key, { name, version: expected + 1, value });
    return expected === 0 ? rows.insert(name, key.id, sealed) : rows.update(name, key.id, sealed, expected);
  };
  const rotation = (): Rotation | undefined => {
    const kept = get(ROTATION);
    if (kept === undefined) return undefined;
    const { from, to } = JSON.parse(kept.value) as { from: string; to: string };
    return { from: new Uint8Array(Buffer.from(from, "hex")), to: new Uint8Array(Buffer.from(to, "hex")) };
  };

  return {
    get,
    put: (name, value, expected) => transact(database, () => store(currentKey(), name, value, expected)),
    delete: rows.remove,
    claim: (name, until, now) => transact(database, () => rows.claim(name, until, now)),
    isClaimed: rows.isClaimed,
    beginRotation(to) {
      transact(database, () => {
        const begun = rotation()?.to;
        if (begun !== undefined && keyId(begun) !== keyId(to)) {
          throw new ServiceError(
            "configuration",
            `${file}: a rotation to the key ${keyId(begun)} has not ended: start the service with it first`,
          );
        }
        if (begun !== undefined) return;
        const both = { from: hex(master), to: hex(to) };
        const secrets = rows.names().map((name) => ({ name, ...(get(name) as Kept) }));
        const key = makeDataKey();
        // A new data key too: whoever has the former master key and an old copy of the file opens nothing written since.
        database.exec("DELETE FROM data_keys");
        wrap(database, key, master);
        wrap(database, key, to);
        for (const secret of secrets) rows.reseal(key.id, encryptRow(key, secret), secret.name);
        store(key, ROTATION, JSON.stringify(both), 0);
      });
    },
    rotation,
    endRotation() {
      transact(database, () => {
        const ending = rotation();
        if (ending === undefined) return;
        rows.forgetMaster(keyId(ending.from));
        rows.remove(ROTATION);
      });
    },
    [Symbol.dispose]() {
      database.close();
    },
  };
}

interface SecretRow {
  readonly version: number;
  readonly key: string;
  readonly sealed: Uint8Array;
}

/** What is asked of the tables, one statement each. */
function statementsOf(database: DatabaseSync) {
  const select = database.prepare("SELECT version, key, sealed FROM secrets WHERE name = ?");
  const names = database.prepare("SELECT name FROM secrets");
  const keys = database.prepare("SELECT DISTINCT id FROM data_keys");
  const insert = database.prepare(
    "INSERT INTO secrets (name, version, key, sealed) VALUES (?, 1, ?, ?) ON CONFLICT DO NOTHING",
  );
  const update = database.prepare(
    "UPDATE secrets SET version = version + 1, key = ?, sealed = ? WHERE name = ? AND version = ?",
  );
  const reseal = database.prepare("UPDATE secrets SET key = ?, sealed = ? WHERE name = ?");
  const remove = database.prepare("DELETE FROM secrets WHERE name = ?");
  const forgetMaster = database.prepare("DELETE FROM data_keys WHERE master = ?");
  const forgetClaims = database.prepare("DELETE FROM claims WHERE until <= ?");
  const claimed = database.prepare("SELECT 1 FROM claims WHERE name = ? AND until > ?");
  const claim = database.prepare("INSERT INTO claims (name, until) VALUES (?, ?) ON CONFLICT DO NOTHING");
  return {
    select: (name: string) => select.get(name) as SecretRow | undefined,
    names: () => (names.all() as { name: string }[]).map(({ name }) => name),
    keyId: () => (keys.get() as { id: string } | undefined)?.id ?? "",
    insert: (name: string, key: string, sealed: Uint8Array) => Number(insert.run(name, key, sealed).changes) === 1,
    update: (name: string, key: string, sealed: Uint8Array, expected: number) =>
      Number(update.run(key, sealed, name, expected).changes) === 1,
    reseal: (key: string, sealed: Uint8Array, name: string) => void reseal.run(key, sealed, name),
    remove: (name: string) => void remove.run(name),
    forgetMaster: (id: string) => void forgetMaster.run(id),
    isClaimed: (name: string, now: number) => claimed.get(name, now) !== undefined,
    claim(name: string, until: number, now: number): boolean {
      forgetClaims.run(now);
      return Number(claim.run(name, until).changes) === 1;
    },
  };
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}
