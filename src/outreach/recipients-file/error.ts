/** Largest file that is read, in bytes: it is held in memory as a whole. */
export const FILE_BYTES_MAX = 50 * 1024 * 1024;

/** At 100 messages a day more rows than this would take 27 years. */
export const ROWS_MAX = 1_000_000;

/** The file as a whole cannot be read; single bad rows are refused one by one instead. */
export class RecipientsFileError extends Error {
  override readonly name = "RecipientsFileError";
  readonly kind: "too_large" | "encoding" | "header" | "syntax";
  constructor(kind: RecipientsFileError["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}
