/**
 * What kind of failure it is: all that the two edges of the program ask. The first number is the exit code of a command
 * (`commands/shared/exit-code.ts`, after sysexits), the second the HTTP status (`http/server/problem.ts`). "-": a fault of ours, which
 * is logged whole; the process ends with 1 and a stack, the request with a 500 that says nothing.
 */
export type ErrorKind =
  /** The arguments do not fit. 2, - */
  | "usage"
  /** A setting, a key or a file does not belong to what is stored, or cannot be used. 78, - */
  | "configuration"
  /** What is stored does not read as what was written. 78, - */
  | "damaged"
  /** A file that was given or made does not hold what it should; nothing came of it. 1, - */
  | "invalid"
  /** What is named is not there. 1, - */
  | "not_found"
  /** Something else has this place or key already; nothing was done. 1, 422 */
  | "conflict"
  /** Another process holds it, or the operator interrupted it: try again later. 75, 503 */
  | "busy"
  /** A queue of ours is at its limit: nothing was done, later it works. 75, 503 */
  | "overloaded"
  /** Nothing can be written now, for want of space mostly: nothing was done, later it works. 75, 503 */
  | "full"
  /** The log was closed, or stopped after a fault. -, 503 */
  | "closed"
  /** Whether it was recorded is not known yet: the next start, or a repeat under its key, tells. -, 503 */
  | "in_doubt"
  /** A network did not answer, or not usably: later it works. 75, 502 */
  | "unavailable"
  /** A network asks to wait. 1, 502 */
  | "rate_limited"
  /** A network wants another authorization. 1, 401 */
  | "unauthorized"
  /** A network says no to what was asked. 1, 502 */
  | "rejected"
  /** A network says no to the account or the app, whatever it asks. 1, 502 */
  | "stopped";

/**
 * The one error that rooms throw for those outside: its kind, and a sentence for people, which holds no secret. A room
 * has a class of its own only where code asks for more than the kind.
 */
export class ServiceError<Kind extends ErrorKind = ErrorKind> extends Error {
  override readonly name: string = "ServiceError";
  readonly kind: Kind;
  constructor(kind: Kind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/** The arguments do not fit; the command line shows it with a pointer to `--help`. */
export function usageError(message: string): ServiceError {
  return new ServiceError("usage", message);
}
