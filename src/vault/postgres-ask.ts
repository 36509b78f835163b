import { isLost, isRefused, sqlState, type TransactionSql } from "eventstore-lite/postgres";
import { ServiceError } from "../platform/service-error.ts";

/** Asks the server, with the name of the set of secrets as $1. */
export type Ask = <Row>(
  query: string,
  ...parameters: (string | number | Uint8Array | null)[]
) => Promise<QueryResult<Row>>;

export interface QueryResult<Row> extends ReadonlyArray<Row> {
  /** Rows that were answered or changed. */
  readonly count: number;
}

const PREPARED = { prepare: true };

/** Over one connection, or in one transaction. */
export function askOver(sql: Pick<TransactionSql, "unsafe">, store: string): Ask {
  return async <Row>(query: string, ...parameters: readonly unknown[]) => {
    const answer = await sql.unsafe(query, [store, ...parameters] as never[], PREPARED);
    return answer as unknown as QueryResult<Row>;
  };
}

// https://www.postgresql.org/docs/current/errcodes-appendix.html
const LOCK_NOT_AVAILABLE = "55P03";
const QUERY_CANCELED = "57014";

/** Maps the server's answer, or its absence, to our error: nothing was changed, except that a claim may have been made. */
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
