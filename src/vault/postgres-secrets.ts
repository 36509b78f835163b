import { migrate, openDatabase, type Database } from "eventstore-lite/postgres";
import { reachServer } from "../log/reach-server.ts";
import type { PostgresPlace } from "../log/store-place.ts";
import type { Secret } from "../platform/secret.ts";
import { createSerialQueue } from "../platform/serial-queue.ts";
import { askOver, faultOf, type Ask } from "./postgres-ask.ts";
import { MIGRATIONS, SCHEMA } from "./postgres-migrations.ts";
import { changesIn, claimsIn, countUp, readRevision, rowsIn } from "./postgres-rows.ts";
import { transact, type Scope } from "./postgres-transaction.ts";
import { contentsOf } from "./secret-contents.ts";
import type { SecretDatabase, SecretPlace } from "./secret-database.ts";

/** Which set of secrets in a database. */
export interface PostgresSecretsPlace extends PostgresPlace {
  readonly store: "vault" | "keys";
}

const NAMES = { vault: "the vault", keys: "the key store" };

/** Secrets in tables that all instances share. */
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

/** Whoever changes something has one of them for as long as that takes. */
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
  // One change of this process at a time: the others would wait in the server, and have all connections.
  const oneByOne = createSerialQueue();
  /** How often this process itself has counted the revision up. */
  let own = 0;
  const ask: Ask = async (query, ...parameters) => {
    try {
      return await database.run((sql) => askOver(sql, store)(query, ...parameters));
    } catch (fault) {
      throw faultOf(fault, name);
    }
  };
  const change: SecretDatabase["transact"] = async (work) => {
    const result = await transact(database, scope, async (within) => {
      const revision = (await countUp(within)) - own;
      return work({ ...rowsIn(within), ...changesIn(within), revision: async () => revision });
    });
    own += 1;
    return result;
  };
  const transactAlone: SecretDatabase["transact"] = (work) => oneByOne(() => change(work));
  return {
    name,
    ...contentsOf({ name, transact: transactAlone }),
    ...rowsIn(ask),
    revision: async () => (await readRevision(ask)) - own,
    ...claimsIn(ask),
    transact: transactAlone,
    [Symbol.asyncDispose]: () => oneByOne(() => database.close()),
  };
}
