import { migrate, openDatabase, type Database } from "eventstore-lite/postgres";
import { reachServer, type PostgresPlace } from "../log/store-backends.ts";
import type { Secret } from "../platform/secret.ts";
import { createSerialQueue } from "../platform/serial-queue.ts";
import { changesIn, countUp, notesAndClaimsIn, readLabel, rowsIn } from "./postgres-queries.ts";
import { transact, type Scope, askOver, toServiceError, type Ask } from "./postgres-transaction.ts";
import { type SecretDatabase, type SecretPlace, createContents } from "./secret-database.ts";

export interface PostgresSecretsPlace extends PostgresPlace {
  readonly store: "vault" | "keys";
}

const NAMES = { vault: "the vault", keys: "the key store" };

/** Set of secrets in PostgreSQL tables that all instances share. */
export function postgresSecrets({ url, shown, store }: PostgresSecretsPlace): SecretPlace {
  const name = `${NAMES[store]} in ${shown}`;
  const open = () => openSecrets(url, store, name);
  return {
    name,
    open,
    async isThere() {
      await using database = await open();
      return (await database.dataKeys()).length > 0;
    },
  };
}

/** Number of connections to the server. A change of secrets holds one until it ends; the other is for reads. */
const CONNECTIONS = 2;

async function openSecrets(url: Secret, store: string, name: string): Promise<SecretDatabase> {
  const database = openDatabase({ url: url.reveal(), connections: CONNECTIONS, name: "reachlog secrets" });
  try {
    const tables = { schema: SCHEMA, component: "secrets", migrations: MIGRATIONS };
    await reachServer(name, () => migrate(database, tables));
  } catch (fault) {
    await database.close();
    throw fault;
  }
  return databaseIn(database, { store, name });
}

function databaseIn(database: Database, scope: Scope): SecretDatabase {
  const { store, name } = scope;
  // One change of this process at a time: several would wait in the server, and use all connections.
  const oneByOne = createSerialQueue();
  /** Number of times that this process itself has increased the revision of the secrets. */
  let own = 0;
  const ask: Ask = async (query, ...parameters) => {
    try {
      return await database.run((sql) => askOver(sql, store)(query, ...parameters));
    } catch (fault) {
      throw toServiceError(fault, name);
    }
  };
  const change: SecretDatabase["transact"] = async (work) => {
    const result = await transact(database, scope, async (within) => {
      const label = await countUp(within);
      const revision = label.changes - own;
      return work({
        ...rowsIn(within),
        ...changesIn(within),
        revision: async () => revision,
        label: async () => label,
      });
    });
    own += 1;
    return result;
  };
  const transactAlone: SecretDatabase["transact"] = (work) => oneByOne(() => change(work));
  return {
    name,
    ...createContents(name, transactAlone),
    ...rowsIn(ask),
    revision: async () => (await readLabel(ask)).changes - own,
    label: () => readLabel(ask),
    ...notesAndClaimsIn(ask),
    transact: transactAlone,
    [Symbol.asyncDispose]: () => oneByOne(() => database.close()),
  };
}

/**
 * Schema with the tables of secrets, separate from the log, so that a role or a dump can leave them out.
 * KEYS_DATABASE_URL takes the keys of personal data to a database whose backups are short-lived.
 */
const SCHEMA = "reachlog_vault";

/**
 * Each migration brings the tables to the next format; a released one is never changed. A deleted secret stays,
 * encrypted with the former data key, in dead rows, the write-ahead log, standbys and backups, until these are cleaned
 * up.
 */
const MIGRATIONS: readonly string[] = [
  `
  -- The sets of secrets. A writer that changes one counts its revision up, and so is the only one who changes it.
  CREATE TABLE stores (
    name text COLLATE "C" PRIMARY KEY,
    revision bigint NOT NULL,
    log text, -- the id of the log that the set belongs to; NULL before one was opened with it
    epoch text, -- the continuation of that log; NULL: the one that is opened next
    place text -- where that log is; NULL: anywhere
  ) WITH (fillfactor = 50);
  INSERT INTO stores (name, revision) VALUES ('vault', 0), ('keys', 0);

  -- What is no secret, and is not to be lost with the log's tables: the log's newest signed checkpoint. Apart from the
  -- sets, since a new one every few seconds is no change of theirs.
  CREATE TABLE notes (
    store text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    note text NOT NULL,
    PRIMARY KEY (store, name)
  ) WITH (fillfactor = 50);

  -- One data key; more than one row only while the master key is exchanged.
  CREATE TABLE data_keys (
    store text COLLATE "C" NOT NULL,
    id text NOT NULL,
    master text NOT NULL,
    wrapped bytea NOT NULL,
    PRIMARY KEY (store, id, master)
  );

  CREATE TABLE secrets (
    store text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    key text, -- the id of the data key
    ciphertext bytea, -- NULL for what is gone
    PRIMARY KEY (store, name)
  ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1);

  -- What may be used once.
  CREATE TABLE claims (
    store text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    until bigint NOT NULL, -- milliseconds since 1970, UTC: it is remembered until then
    PRIMARY KEY (store, name)
  );
  CREATE INDEX claims_until ON claims (store, until);`,
];
