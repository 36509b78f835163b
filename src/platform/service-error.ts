/**
 * The kind of a failure. After each: a command's exit code (`commands/shared/exit-code.ts`, after sysexits) and the
 * HTTP status (`http/server/problem.ts`). "-" is a fault of ours: logged whole, and exit code 1 with a stack or a bare
 * 500.
 */
export type ErrorKind =
  /** The arguments do not fit. 2, - */
  | "usage"
  /** A setting, a key or a file does not belong to what is stored, or cannot be used. 78, - */
  | "configuration"
  /** Stored data does not read as it was written. 78, - */
  | "damaged"
  /** A file that was given or made does not hold what it should; it had no effect. 1, - */
  | "invalid"
  /** The named thing does not exist. 1, - */
  | "not_found"
  /** The place or key is already in use; nothing was done. 1, 422 */
  | "conflict"
  /** Another process holds it, or the operator interrupted it. Try again later. 75, 503 */
  | "busy"
  /** A queue of ours is full. Nothing was done; try again later. 75, 503 */
  | "overloaded"
  /** Nothing can be written now, usually for lack of space. Nothing was done; try again later. 75, 503 */
  | "full"
  /** The log was closed, or stopped after a fault. -, 503 */
  | "closed"
  /** It is not known yet if it was recorded. The next start, or a repeat under its key, will tell. -, 503 */
  | "in_doubt"
  /** A network did not answer, or not usably. Try again later. 75, 502 */
  | "unavailable"
  /** A network asks to wait. 1, 502 */
  | "rate_limited"
  /** A network demands another authorization. 1, 401 */
  | "unauthorized"
  /** A network refuses the request. 1, 502 */
  | "rejected"
  /** A network refuses the account or the app, for any request. 1, 502 */
  | "stopped";

/**
 * The one error that rooms throw to callers outside: its kind, and a sentence for people, which holds no secret. A room
 * has another class only if code needs more than the kind.
 */
export class ServiceError<Kind extends ErrorKind = ErrorKind> extends Error {
  override readonly name: string = "ServiceError";
  readonly kind: Kind;
  constructor(kind: Kind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/** The error for arguments that do not fit. The command line shows it with a pointer to `--help`. */
export function usageError(message: string): ServiceError {
  return new ServiceError("usage", message);
}
