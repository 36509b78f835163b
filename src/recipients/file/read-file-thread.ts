// Reads a file of recipients or suppressions and sends it in pieces; started by read-in-worker.ts.
import { parentPort, workerData } from "node:worker_threads";
import { ServiceError } from "../../platform/service-error.ts";
import { parseRecipients, parseSuppressions, type RefusedRow, type SuppressionRow } from "../parse-imported-lists.ts";
import type { Duplicate, ImportedRow } from "./unique-recipients.ts";
import type { StatedConsent } from "../parse-consent.ts";
import type { DateOrder } from "../parse-day.ts";
import type { ColumnMap } from "./parse-column-choices.ts";
import { previewRecipients, type FilePreview } from "./preview-columns-and-dates.ts";
import type { CellNote } from "./cell-notes.ts";
import { REMARKS_MAX, type RecipientsFormat, type Some } from "./format-and-limits.ts";

/** Remarks on a file: the rows that were refused, and the cells that were changed. */
export interface Remarks {
  readonly refused: Some<RefusedRow>;
  readonly duplicates: Some<Duplicate>;
  readonly notes: Some<CellNote>;
  readonly preview?: FilePreview;
}

/**
 * Message from the thread that reads a file: some rows, or at the end the remarks on the file, or why the file cannot
 * be read.
 */
export type ReadReply<Row> = { readonly rows: readonly Row[] } | Remarks | { readonly fault: string };

/** Input of the thread that reads a file. */
export interface ReadTask {
  readonly file: Uint8Array;
  readonly format: RecipientsFormat;
  /** Time now, in ms since 1970. */
  readonly now: number;
  readonly dates?: DateOrder | undefined;
  /**
   * Name of the key with which this log hashes recipients' names; absent if the file has recipients and not
   * suppressions.
   */
  readonly hashKey?: string;
  readonly map?: ColumnMap | undefined;
  readonly stated?: StatedConsent | undefined;
  /** Template fields that a message uses, if the file is read for a preview. */
  readonly preview?: { readonly fields: readonly string[] | undefined };
}

/** Number of rows in one message of the reading thread: the main thread takes a millisecond to receive them. */
const PIECE_ROWS = 1_000;

function* createReplies({
  file,
  format,
  hashKey,
  preview: asked,
  ...options
}: ReadTask): Generator<ReadReply<ImportedRow | SuppressionRow>> {
  try {
    const { rows, refused, duplicates, notes, preview } = read();
    for (let at = 0; at < rows.length; at += PIECE_ROWS) yield { rows: rows.slice(at, at + PIECE_ROWS) };
    yield { refused: takeFirst(refused), duplicates: takeFirst(duplicates), notes, ...(preview && { preview }) };
  } catch (fault) {
    if (!(fault instanceof ServiceError)) throw fault;
    yield { fault: fault.message };
  }

  function read() {
    if (asked !== undefined) return previewRecipients(file, format, { ...options, ...asked });
    if (hashKey === undefined) return { ...parseRecipients(file, format, options), preview: undefined };
    return { ...parseSuppressions(file, format, options, hashKey), duplicates: [], preview: undefined };
  }
}

function takeFirst<Member>(all: readonly Member[]): Some<Member> {
  return { count: all.length, first: all.slice(0, REMARKS_MAX) };
}

const replies = createReplies(workerData as ReadTask);
parentPort?.on("message", () => {
  const { value } = replies.next();
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
  parentPort?.postMessage(value);
});
