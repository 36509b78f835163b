// Reads a file of recipients or suppressions and sends it in pieces; started by read-in-worker.ts.
import { parentPort, workerData } from "node:worker_threads";
import { ServiceError } from "../../platform/service-error.ts";
import { parseRecipients, parseSuppressions, type RefusedRow, type SuppressionRow } from "../recipients-file.ts";
import type { Duplicate, ImportedRow } from "./unique-recipients.ts";
import type { DateOrder } from "../parse-day.ts";
import type { CellNote } from "./cell-notes.ts";
import { REMARKS_MAX, type RecipientsFormat, type Some } from "./format.ts";

/** Rows and cells that were not taken as written. */
export interface Remarks {
  readonly refused: Some<RefusedRow>;
  readonly duplicates: Some<Duplicate>;
  readonly notes: Some<CellNote>;
}

/** The rows of the next piece; at the end, the remarks; or why the file cannot be read. */
export type ReadReply<Row> = { readonly rows: readonly Row[] } | Remarks | { readonly fault: string };

/** The input of the thread. */
export interface ReadTask {
  readonly file: Uint8Array;
  readonly format: RecipientsFormat;
  /** In ms since 1970. */
  readonly now: number;
  readonly dates?: DateOrder | undefined;
  /** Names the key of the hashes, if the file is a list of suppressions; absent for recipients. */
  readonly hashKey?: string;
}

/** Rows of one piece. The other thread takes a millisecond to receive them. */
const PIECE_ROWS = 1_000;

function* createReplies({
  file,
  format,
  hashKey,
  ...options
}: ReadTask): Generator<ReadReply<ImportedRow | SuppressionRow>> {
  try {
    const { rows, refused, duplicates, notes } =
      hashKey === undefined
        ? parseRecipients(file, format, options)
        : { ...parseSuppressions(file, format, options, hashKey), duplicates: [] };
    for (let at = 0; at < rows.length; at += PIECE_ROWS) yield { rows: rows.slice(at, at + PIECE_ROWS) };
    yield { refused: takeFirst(refused), duplicates: takeFirst(duplicates), notes };
  } catch (fault) {
    if (!(fault instanceof ServiceError)) throw fault;
    yield { fault: fault.message };
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
