import type { PostgresError } from "postgres";
import type { Fault } from "../append/writer-messages.ts";
import { StoreError, StoreOverloaded, StoreUnavailable } from "../errors.ts";

// SQLSTATE code of a statement that names a missing table:
// https://www.postgresql.org/docs/current/errcodes-appendix.html
const UNDEFINED_TABLE = "42P01";
const UNDEFINED_FUNCTION = "42883";
const INVALID_SCHEMA = "3F000";
const INVALID_STATEMENT_NAME = "26000";
const FAILED_TRANSACTION = "25P02";
const LOCK_NOT_AVAILABLE = "55P03";
const DEADLOCK = "40P01";
const QUERY_CANCELED = "57014";
const READ_ONLY = "25006";
const NO_RIGHT = "42501";
const DISK_FULL = "53100";
const INSUFFICIENT_RESOURCES = "53";
/** Class of SQLSTATE codes of a server that shuts down, crashes or does not take connections yet. */
const OPERATOR_INTERVENTION = "57P";
const CONNECTION_EXCEPTION = "08";
/** SQLSTATE that the log's functions raise if the log, or its epoch, is not the one that this writer has seen. */
const DIVERGED = "EL001";

/**
 * Error: no connection was made, so no query was sent. `cause` is the network's error, or the answer by which the
 * database server refused the connection.
 */
export class NotConnected extends Error {
  override readonly name = "NotConnected";
  readonly code = "NOT_CONNECTED";
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

/** The SQLSTATE of the server's error, also for a refused connect; undefined if the server did not answer. */
export function sqlState(error: unknown): string | undefined {
  return answerIn(error instanceof NotConnected ? error.cause : error)?.code;
}

function answerIn(error: unknown): PostgresError | undefined {
  return error instanceof Error && error.name === "PostgresError" ? (error as PostgresError) : undefined;
}

/** True if the tables or functions of a log do not exist. */
export function isMissing(error: unknown): boolean {
  return [UNDEFINED_TABLE, UNDEFINED_FUNCTION, INVALID_SCHEMA].includes(sqlState(error) ?? "");
}

/** True if the error says that the connection does not know a prepared statement, so that the transaction failed. */
export function isForgotten(error: unknown): boolean {
  return [INVALID_STATEMENT_NAME, FAILED_TRANSACTION].includes(sqlState(error) ?? "");
}

/**
 * True if the request may have been executed, because the server gave no answer or ended the connection. An error that
 * is no answer of the server counts too: the driver may throw it at any point.
 */
export function isUnanswered(error: unknown): boolean {
  const answer = answerIn(error);
  if (answer === undefined) return true;
  const { code, severity, severity_local } = answer;
  // PostgreSQL sends an error's severity in two fields; a connection pool sends it only in the older one,
  // `severity_local`.
  const isEnd = ["FATAL", "PANIC"].includes(severity ?? severity_local);
  return isEnd || code.startsWith(OPERATOR_INTERVENTION) || code.startsWith(CONNECTION_EXCEPTION);
}

/**
 * True if the connection of a failed query is no longer usable. Errors that the calling code itself throws do not
 * count.
 */
export function isLost(error: unknown): boolean {
  return error instanceof Error && !(error instanceof StoreError) && "code" in error && isUnanswered(error);
}

/** True if the server, or this database, accepts no writes; also if that is the cause of the error. */
export function isReadOnly(error: unknown): boolean {
  return error instanceof Error && (sqlState(error) ?? sqlState(error.cause)) === READ_ONLY;
}

/**
 * Thrown if the server that was reached accepts no writes: it is a standby, a former primary, or set to accept none.
 */
export class NoPrimary extends Error {
  override readonly name = "NoPrimary";
  constructor(why: string) {
    super(`the server ${why}`);
  }
}

/** Returns the fault that an error means if the server refused the request, so that nothing was written. */
export function faultOf(error: unknown): Fault {
  const state = sqlState(error) ?? "";
  if (state === DIVERGED) return "diverged";
  if (state === DISK_FULL) return "full";
  if ([LOCK_NOT_AVAILABLE, QUERY_CANCELED, DEADLOCK].includes(state)) return "busy";
  return "unavailable";
}

/** True if the error is the server's refusal: it cannot do this now, or its administrator does not allow it. */
export function isRefused(error: unknown): boolean {
  const state = sqlState(error) ?? "";
  return state === READ_ONLY || state === NO_RIGHT || state.startsWith(INSUFFICIENT_RESOURCES);
}

/**
 * Returns the error that a reader's caller gets. Missing tables count as an unavailable log, because an administrator
 * has dropped them while it was open.
 */
export function readerError(error: unknown): unknown {
  if (sqlState(error) === QUERY_CANCELED) return new StoreOverloaded("the server was too slow: try again later");
  return isRefused(error) || isMissing(error) || isLost(error) ? new StoreUnavailable(error) : error;
}
