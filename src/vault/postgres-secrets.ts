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
import { changesIn, claimsIn, countUp, readRevision, rowsIn, type Answer, type Ask } from "./postgres-rows.ts";
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

/** Over one connection, or in one transaction. */
function askOver(sql: Pick<TransactionSql, "unsafe">, store: string): Ask {
  return async <Row>(query: string, ...parameters: readonly unknown[]) => {
    const answer = await sql.unsafe(query, [store, ...parameters] as never[], PREPARED);
    return answer as unknown as Answer<Row>;
  };
}

function databaseIn(database: Database, store: string, name: string): SecretDatabase {
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
  const transact = async <Result>(work: (rows: SecretChanges) => Promise<Result>): Promise<Result> => {
    let isCommitting = false;
    /** The driver fails outside of all promises when something is sent over a connection that is gone. */
    let isGone = false;
    const change = async (sql: TransactionSql): Promise<{ readonly result: Result }> => {
      const send = askOver(sql, store);
      const within: Ask = async (query, ...parameters) => {
        if (isGone) throw away(name);
        try {
          return await send(query, ...parameters);
        } catch (fault) {
          isGone ||= isLost(fault);
          throw faultOf(fault, name);
        }
      };
      try {
        const revision = (await countUp(within)) - own;
        const result = await work({ ...rowsIn(within), ...changesIn(within), revision: async () => revision });
        isCommitting = true;
        return { result };
      } catch (fault) {
        // It would send a rollback; that the connection is gone ends the transaction by itself.
        if (isGone) return new Promise<never>(() => {});
        throw fault;
      }
    };
    try {
      const { result } = await database.run((sql) => sql.begin(change), CHANGE_MS_MAX);
      own += 1;
      return result;
    } catch (fault) {
      isGone ||= isLost(fault);
      if (!isCommitting || !isUnanswered(fault)) throw faultOf(fault, name);
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

/** What the server's answer, or that there is none, means to whoever asked: nothing was changed, but what is claimed may be. */
function faultOf(fault: unknown, name: string): unknown {
  const state = sqlState(fault) ?? "";
  const cause = { cause: fault };
  if ([LOCK_NOT_AVAILABLE, QUERY_CANCELED].includes(state))
    return new ServiceError("busy", `${name} is being changed by another instance`, cause);
  if ([DISK_FULL, READ_ONLY].includes(state)) return new ServiceError("full", `${name} cannot be written now`, cause);
  return isLost(fault) ? away(name, cause) : fault;
}

function away(name: string, options?: ErrorOptions): ServiceError {
  return new ServiceError("full", `${name} does not answer`, options);
}
