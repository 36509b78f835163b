import {
  ANSWER_MS_MAX,
  isLost,
  isUnanswered,
  type Database,
  type TransactionSql,
  isRefused,
  sqlState,
} from "eventstore-lite/postgres";
import { ServiceError } from "../platform/service-error.ts";

/** Runs a query; its parameter $1 is the name of the set of secrets, and the given parameters follow. */
export type Ask = <Row>(
  query: string,
  ...parameters: (string | number | Uint8Array | null)[]
) => Promise<QueryResult<Row>>;

export interface QueryResult<Row> extends ReadonlyArray<Row> {
  /** Number of rows that a query returned or changed. */
  readonly count: number;
}

/** Connection to PostgreSQL, or a transaction on one. */
interface QueryRunner {
  readonly unsafe: TransactionSql["unsafe"];
}

/** Returns a function that runs queries over one connection, or in one transaction. */
export function askOver(sql: QueryRunner, store: string): Ask {
  return async <Row>(query: string, ...parameters: readonly unknown[]) => {
    const answer = await sql.unsafe(query, [store, ...parameters] as never[], { prepare: true });
    return answer as unknown as QueryResult<Row>;
  };
}

// https://www.postgresql.org/docs/current/errcodes-appendix.html
const LOCK_NOT_AVAILABLE = "55P03";
const QUERY_CANCELED = "57014";

/**
 * Converts PostgreSQL's error, or its silence, to a ServiceError. After such an error nothing was changed, except that
 * a claim may have been made.
 */
export function toServiceError(fault: unknown, name: string): unknown {
  const state = sqlState(fault) ?? "";
  const cause = { cause: fault };
  if ([LOCK_NOT_AVAILABLE, QUERY_CANCELED].includes(state))
    return new ServiceError("busy", `${name} is being changed by another instance`, cause);
  if (isRefused(fault)) return new ServiceError("full", `${name} cannot be written now`, cause);
  return isLost(fault) ? away(name, cause) : fault;
}

export function away(name: string, options?: ErrorOptions): ServiceError {
  return new ServiceError("full", `${name} does not answer`, options);
}

/**
 * Maximum time of one transaction that changes secrets, because it may re-encrypt all of them, at 60 µs each. A query
 * that is not answered within ANSWER_MS_MAX ends the transaction sooner.
 */
const CHANGE_MS_MAX = 3_600_000;

/** Name of a set of secrets in the tables, and its name in messages. */
export interface Scope {
  readonly store: string;
  readonly name: string;
}

/**
 * Runs the queries of `work` in one transaction. Throws what `work` throws, and a ServiceError if the server cannot do
 * it (busy, full), or did not say whether it has committed (in_doubt).
 */
export async function transact<Result>(
  database: Database,
  { store, name }: Scope,
  work: (ask: Ask) => Promise<Result>,
): Promise<Result> {
  let isCommitting = false;
  /**
   * True once the connection is lost. Sending over a lost connection would make the driver fail outside of all
   * promises.
   */
  let isGone = false;
  const watchdog = createWatchdog(ANSWER_MS_MAX);
  const within = async (sql: TransactionSql): Promise<{ readonly result: Result }> => {
    watchdog.answered();
    const send = askOver(sql, store);
    const ask: Ask = async (query, ...parameters) => {
      if (isGone) throw away(name);
      watchdog.asked();
      try {
        return await send(query, ...parameters);
      } catch (fault) {
        isGone ||= isLost(fault);
        throw toServiceError(fault, name);
      } finally {
        watchdog.answered();
      }
    };
    try {
      const result = await work(ask);
      isCommitting = true;
      watchdog.asked();
      return { result };
    } catch (fault) {
      // The promise never resolves, because a rejection would make the driver send a rollback. The lost connection ends
      // the transaction by itself.
      if (isGone) return new Promise<never>(() => {});
      throw fault;
    }
  };
  watchdog.asked();
  try {
    const done = await database.run((sql) => Promise.race([sql.begin(within), watchdog.silence]), CHANGE_MS_MAX);
    return done.result;
  } catch (fault) {
    isGone ||= isLost(fault);
    if (!isCommitting || !isUnanswered(fault)) throw toServiceError(fault, name);
    throw new ServiceError("in_doubt", `${name}: whether a change was stored is not known`, { cause: fault });
  } finally {
    watchdog.stop();
  }
}

/** Watches the answers of a server. Its promise `silence` rejects once a query was not answered for `ms`. */
function createWatchdog(ms: number) {
  const { promise: silence, reject } = Promise.withResolvers<never>();
  let pending = 0;
  let timer: NodeJS.Timeout | undefined;
  const watch = (): void => {
    clearTimeout(timer);
    if (pending > 0) timer = setTimeout(() => reject(Object.assign(new Error("no answer"), { code: "ETIMEDOUT" })), ms);
  };
  const count = (more: number) => (): void => {
    pending += more;
    watch();
  };
  return { silence, asked: count(1), answered: count(-1), stop: count(-Infinity) };
}
