import { chmodSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { makeDataKey, wrap } from "./data-key.ts";
import { deriveKey, keyId } from "./key.ts";
import { open } from "./encrypt.ts";
import { encryptRow } from "./secret-row.ts";
import { transact } from "./transact.ts";
import { vaultKeyMismatch } from "./vault-error.ts";
import { ServiceError } from "../platform/service-error.ts";

/** Wait for a command that writes the vault at the same moment. */
const BUSY_TIMEOUT_MS = 5_000;

/** Grows with each change of the tables. 2: data keys, and the key's id in each row. */
const FORMAT_VERSION = 2;

const TABLES = `
  -- One data key; more than one row only while the master key is exchanged.
  CREATE TABLE data_keys (
    id TEXT NOT NULL, master TEXT NOT NULL, wrapped BLOB NOT NULL, PRIMARY KEY (id, master)) STRICT;
  CREATE TABLE secrets (
    name TEXT PRIMARY KEY, version INTEGER NOT NULL, key TEXT NOT NULL, sealed BLOB NOT NULL) STRICT;
  -- What may be used once, until when it is remembered (ms since the epoch).
  CREATE TABLE claims (name TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT`;

/** Opens or makes the vault's database (mode 0600), in the present format. Nothing is changed when the key is wrong. */
export function openVaultFile(file: string, master: Uint8Array): DatabaseSync {
  const database = new DatabaseSync(file);
  try {
    chmodSync(file, 0o600);
    database.exec(`PRAGMA busy_timeout=${BUSY_TIMEOUT_MS}; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
      PRAGMA secure_delete=ON; PRAGMA trusted_schema=OFF`);
    if (formatOf(database) !== FORMAT_VERSION) transact(database, () => toPresentFormat(database, master, file));
    return database;
  } catch (fault) {
    database.close();
    throw fault;
  }
}

function formatOf(database: DatabaseSync): number {
  const { user_version: version } = database.prepare("PRAGMA user_version").get() as { user_version: number };
  return version;
}

function toPresentFormat(database: DatabaseSync, master: Uint8Array, file: string): void {
  const format = formatOf(database);
  // Another process was first.
  if (format === FORMAT_VERSION) return;
  if (format > FORMAT_VERSION) throw new ServiceError("configuration", `${file} was written by a newer reachlog`);
  const former = formerSecrets(database, master, file);
  database.exec(`DROP TABLE IF EXISTS secrets; ${TABLES}; PRAGMA user_version=${FORMAT_VERSION}`);
  const key = makeDataKey();
  wrap(database, key, master);
  const insert = database.prepare("INSERT INTO secrets (name, version, key, sealed) VALUES (?, ?, ?, ?)");
  for (const { name, version, value } of former) {
    insert.run(name, version, key.id, encryptRow(key, { name, version, value }));
  }
}

/** The first format's known secret, which only showed whether the key was right. */
const CANARY = "key-check";

/** What a vault of the first format holds, whose rows were sealed with a key derived from the master key. */
function formerSecrets(database: DatabaseSync, master: Uint8Array, file: string) {
  const hasTable = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'secrets'").get() !== undefined;
  if (!hasTable) return [];
  const key = deriveKey(master, "vault");
  const rows = database.prepare("SELECT name, version, sealed FROM secrets").all() as unknown as FormerRow[];
  const secrets = rows.map(({ name, version, sealed }) => {
    const value = open(key, sealed, `${name}|${version}`);
    if (value === undefined) throw vaultKeyMismatch(file, keyId(master), []);
    return { name, version, value };
  });
  return secrets.filter(({ name }) => name !== CANARY);
}

interface FormerRow {
  readonly name: string;
  readonly version: number;
  readonly sealed: Uint8Array;
}
