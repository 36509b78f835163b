import { chmodSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { deriveKey } from "./key.ts";
import { open, seal } from "./seal.ts";

/** A secret and the version to name when it is replaced. */
export interface Kept {
  readonly version: number;
  readonly value: string;
}

/** Where tokens live: encrypted at rest, apart from the log, so that no event ever holds one. */
export interface Vault extends Disposable {
  get(name: string): Kept | undefined;
  /** Stores durably. False when the secret is no longer at `expected` (0: absent): somebody else was first. */
  put(name: string, value: string, expected: number): boolean;
  delete(name: string): void;
}

/** The vault was sealed with another key. */
export class VaultKeyMismatch extends Error {
  override readonly name = "VaultKeyMismatch";
  constructor(file: string) {
    super(`${file} was sealed with another key: give the one it was made with (REACHLOG_KEY or the key file)`);
  }
}

/** Wait for a command that writes the vault at the same moment. */
const BUSY_TIMEOUT_MS = 5_000;

/** A known secret that only the right key opens; checked at every start. */
const CANARY = "key-check";

/** Opens or makes the vault file (mode 0600). Throws {@link VaultKeyMismatch}; nothing is overwritten then. */
export function openVault(file: string, masterKey: Uint8Array): Vault {
  const key = deriveKey(masterKey, "vault");
  const database = new DatabaseSync(file);
  chmodSync(file, 0o600);
  database.exec(`PRAGMA busy_timeout=${BUSY_TIMEOUT_MS}; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
    PRAGMA secure_delete=ON; PRAGMA trusted_schema=OFF;
    CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, version INTEGER NOT NULL, sealed BLOB NOT NULL) STRICT`);
  const select = database.prepare("SELECT version, sealed FROM secrets WHERE name = ?");
  const insert = database.prepare(
    "INSERT INTO secrets (name, version, sealed) VALUES (?, 1, ?) ON CONFLICT DO NOTHING",
  );
  const update = database.prepare(
    "UPDATE secrets SET version = version + 1, sealed = ? WHERE name = ? AND version = ?",
  );
  const remove = database.prepare("DELETE FROM secrets WHERE name = ?");

  const vault: Vault = {
    get(name) {
      const row = select.get(name) as { version: number; sealed: Uint8Array } | undefined;
      if (row === undefined) return undefined;
      // The version is part of the context, so an older row put back in place does not open.
      const value = open(key, row.sealed, contextOf(name, row.version));
      if (value === undefined) throw new VaultKeyMismatch(file);
      return { version: row.version, value };
    },
    put(name, value, expected) {
      const sealed = seal(key, value, contextOf(name, expected + 1));
      const { changes } = expected === 0 ? insert.run(name, sealed) : update.run(sealed, name, expected);
      return Number(changes) === 1;
    },
    delete(name) {
      remove.run(name);
    },
    [Symbol.dispose]() {
      database.close();
    },
  };
  try {
    if (vault.get(CANARY) === undefined) vault.put(CANARY, "", 0);
  } catch (fault) {
    database.close();
    throw fault;
  }
  return vault;
}

function contextOf(name: string, version: number): string {
  return `${name}|${version}`;
}
