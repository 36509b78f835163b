import {
  isLost,
  isUnanswered,
  migrate,
  openDatabase,
  sqlState,
  type Database,
  type TransactionSql,
} from "eventstore-lite/postgres";
import { reaching } from "../log/reaching.ts";
import type { Secret } from "../platform/secret.ts";
import { createSerialQueue } from "../platform/serial-queue.ts";
import { ServiceError } from "../platform/service-error.ts";
import { MIGRATIONS, SCHEMA } from "./postgres-migrations.ts";
import { changesIn, claimsIn, countUp, readRevision, rowsIn, type Ask } from "./postgres-rows.ts";
import type { SecretChanges, SecretDatabase, SecretPlace } from "./secret-database.ts";

/** A database on a server, and which set of secrets in it. */
export interface PostgresPlace {
  /** Holds the password. */
  readonly url: Secret;
  /** How messages call the database. */
  readonly shown: string;
  readonly store: "vault" | "keys";
}

const NAMES = { vault: "the vault", keys: "the key store" };

/** Secrets in tables that all instances share. */
export function postgresSecrets({ url, shown, store }: PostgresPlace): SecretPlace {
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
    await reaching(name, () => migrate(database, tables));
  } catch (fault) {
    await database.close();
    throw fault;
  }
  return databaseIn(database, store, name);
}

/** All secrets may be encrypted anew in one change: 60 µs each. */
const CHANGE_MS_MAX = 300_000;

const PREPARED = { prepare: true };

function databaseIn(database: Database, store: string, name: string): SecretDatabase {
  // One change of this process at a time: the others would wait in the server, and have all connections.
  const oneByOne = createSerialQueue();
  /** How often this process itself has counted the revision up. */
  let own = 0;
  const answered = async <Answered>(asked: PromiseLike<Answered>): Promise<Answered> => {
    try {
      return await asked;
    } catch (fault) {
      throw faultOf(fault, name);
    }
  };
  const ask: Ask = (query, ...parameters) =>
    answered(database.run((sql) => sql.unsafe(query, [store, ...parameters] as never[], PREPARED))) as never;
  const transact = async <Result>(work: (rows: SecretChanges) => Promise<Result>): Promise<Result> => {
    let stage = "beginning" as "beginning" | "working" | "committing";
    try {
      const change = async (sql: TransactionSql) => {
        stage = "working";
        const within: Ask = (query, ...parameters) =>
          answered(sql.unsafe(query, [store, ...parameters] as never[], PREPARED)) as never;
        const revision = (await countUp(within)) - own;
        const result = await work({ ...rowsIn(within), ...changesIn(within), revision: async () => revision });
        stage = "committing";
        return { result };
      };
      const done = await database.run((sql) => sql.begin(change), CHANGE_MS_MAX);
      own += 1;
      return done.result;
    } catch (fault) {
      if (stage === "working") throw fault;
      if (stage === "beginning" || !isUnanswered(fault)) throw faultOf(fault, name);
      throw new ServiceError("in_doubt", `${name}: whether a change was stored is not known`, { cause: fault });
    }
  };
  return {
    name,
    ...rowsIn(ask),
    revision: async () => (await readRevision(ask)) - own,
    ...claimsIn(ask),
    transact: (work) => oneByOne(() => transact(work)),
    [Symbol.asyncDispose]: () => oneByOne(() => database.close()),
  };
}

// https://www.postgresql.org/docs/current/errcodes-appendix.html
const LOCK_NOT_AVAILABLE = "55P03";
const QUERY_CANCELED = "57014";
const DISK_FULL = "53100";
const READ_ONLY = "25006";

/** What the server's answer, or that there is none, means to whoever asked; nothing was changed. */
function faultOf(fault: unknown, name: string): unknown {
  const state = sqlState(fault) ?? "";
  const cause = { cause: fault };
  if ([LOCK_NOT_AVAILABLE, QUERY_CANCELED].includes(state))
    return new ServiceError("busy", `${name} is being changed by another instance`, cause);
  if ([DISK_FULL, READ_ONLY].includes(state)) return new ServiceError("full", `${name} cannot be written now`, cause);
  return isLost(fault) ? new ServiceError("full", `${name} does not answer`, cause) : fault;
}
