/**
 * Kinds of failure, with a command's exit code (`commands/shared/exit-code.ts`) and an HTTP status
 * (`http/server/problem.ts`). A kind without an exit code or status is a bug there: exit code 1 with a stack, or a
 * plain 500.
 */
export type ErrorKind =
  /** The arguments of a command or a call do not fit. Exit 2. */
  | "usage"
  /** A setting, a key or a file does not belong to what is stored, or cannot be used. Exit 78. */
  | "configuration"
  /** Stored data does not read as it was written. Exit 78. */
  | "damaged"
  /** The content of a file that was given or made is wrong. The file was not used. Exit 1. */
  | "invalid"
  /** The named thing does not exist. Exit 1. */
  | "not_found"
  /** The place or key that was asked for is already in use; nothing was done. Exit 1, HTTP 422. */
  | "conflict"
  /**
   * Another process holds a lock or file that is needed, or the operator interrupted the work. Try again later. Exit
   * 75, HTTP 503.
   */
  | "busy"
  /** A queue of the service is full. Nothing was done; try again later. Exit 75, HTTP 503. */
  | "overloaded"
  /** Nothing can be written now, usually for lack of space. Nothing was done; try again later. Exit 75, HTTP 503. */
  | "full"
  /** The log was closed, or stopped after a fault. HTTP 503. */
  | "closed"
  /**
   * It is not known yet if the events were recorded. The next start will find out, or a repeat under the request's
   * idempotency key. HTTP 503.
   */
  | "in_doubt"
  /** A network did not answer, or its answer was unusable. Try again later. Exit 75, HTTP 502. */
  | "unavailable"
  /** A network asks to wait. Exit 1, HTTP 502. */
  | "rate_limited"
  /** A network demands another authorization. Exit 1, HTTP 401. */
  | "unauthorized"
  /** A network refuses the request. Exit 1, HTTP 502. */
  | "rejected"
  /** A network refuses the account or the app, for any request. Exit 1, HTTP 502. */
  | "stopped";

/**
 * The one error that the service's parts throw to their callers: its kind, and a sentence for people, which holds no
 * secret. A part has another class only if code needs more than the kind.
 */
export class ServiceError<Kind extends ErrorKind = ErrorKind> extends Error {
  override readonly name: string = "ServiceError";
  readonly kind: Kind;
  constructor(kind: Kind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/** Creates the error for arguments that do not fit. The command line shows it with a pointer to `--help`. */
export function usageError(message: string): ServiceError {
  return new ServiceError("usage", message);
}

/** Returns the result of `read`, which parses a caller's input, or the sentence by which it refuses the input. */
export async function readOrReason<Value>(read: () => Value | Promise<Value>): Promise<Value | string> {
  try {
    return await read();
  } catch (fault) {
    if (fault instanceof ServiceError && fault.kind === "usage") return fault.message;
    throw fault;
  }
}
