import type { PostgresError } from "postgres";
import type { Fault } from "../append/messages.ts";
import { StoreError, StoreOverloaded, StoreUnavailable } from "../errors.ts";

// https://www.postgresql.org/docs/current/errcodes-appendix.html
const UNDEFINED_TABLE = "42P01";
const UNDEFINED_FUNCTION = "42883";
const INVALID_SCHEMA = "3F000";
const LOCK_NOT_AVAILABLE = "55P03";
const DEADLOCK = "40P01";
const QUERY_CANCELED = "57014";
const READ_ONLY = "25006";
const DISK_FULL = "53100";
const INSUFFICIENT_RESOURCES = "53";
/** The server shuts down, crashes or does not take connections yet. */
const OPERATOR_INTERVENTION = "57P";
const CONNECTION_EXCEPTION = "08";
/** Raised by `append`: the log is not the one that this writer has seen. */
const DIVERGED = "EL001";

/** The SQLSTATE of an error that the server answered; undefined: the answer is missing. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof Error && error.name === "PostgresError" ? (error as PostgresError).code : undefined;
}

/** The tables or functions of a log are not there. */
export function isMissing(error: unknown): boolean {
  return [UNDEFINED_TABLE, UNDEFINED_FUNCTION, INVALID_SCHEMA].includes(sqlState(error) ?? "");
}

/**
 * What was asked may have been done: the server gave no answer, or went away in the middle of it. Any other error is
 * one too, since nobody knows at what point of the driver it came up.
 */
export function isUnanswered(error: unknown): boolean {
  const state = sqlState(error);
  return state === undefined || state.startsWith(OPERATOR_INTERVENTION) || state.startsWith(CONNECTION_EXCEPTION);
}

/** The connection cannot be used any more. What `work` throws by itself says nothing of it. */
export function isLost(error: unknown): boolean {
  return error instanceof Error && !(error instanceof StoreError) && "code" in error && isUnanswered(error);
}

/** Errors of a connection that was never made, by the system and the driver, and by a server that just starts. */
const NEVER_CONNECTED = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "CONNECT_TIMEOUT",
  "57P03",
  "STANDBY_SERVER",
];

/** The server follows another one, and takes no writes. */
export class StandbyServer extends Error {
  override readonly name = "StandbyServer";
  readonly code = "STANDBY_SERVER";
  constructor() {
    super("the server is a standby");
  }
}

/** There was no connection to send it over. */
export function isUnsent(error: unknown): boolean {
  return error instanceof Error && "code" in error && NEVER_CONNECTED.includes(String(error.code));
}

/** Of an error that is an answer: nothing was written. */
export function faultOf(error: unknown): Fault {
  const state = sqlState(error) ?? "";
  if (state === DIVERGED) return "diverged";
  if (state === DISK_FULL) return "full";
  if ([LOCK_NOT_AVAILABLE, QUERY_CANCELED, DEADLOCK].includes(state)) return "busy";
  return "unavailable";
}

/** What a reader's caller gets. */
export function readerError(error: unknown): unknown {
  const state = sqlState(error);
  if (state === QUERY_CANCELED) return new StoreOverloaded();
  const isAway = isLost(error) || state === READ_ONLY || state?.startsWith(INSUFFICIENT_RESOURCES) === true;
  return isAway ? new StoreUnavailable(error) : error;
}
