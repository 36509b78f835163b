import { type AppendJob, charsOf, eventsOf, type Job } from "./batch-and-encode-waiting-jobs.ts";
import type { Load } from "./queue-load.ts";
import { encodeBatch, encodePiece, type Piece, type SentAppend } from "./writer-messages.ts";
import type { PieceSender } from "./prepare-append.ts";

export interface PieceOptions {
  readonly clock: () => number;
  /** True if a subscriber follows the log live, and so needs the hashes of new events. */
  readonly isFollowed: () => boolean;
  /** Sends a piece of an append to the writer thread; undefined if that thread takes no appends in pieces. */
  readonly sendPiece?: (piece: Piece) => void;
}

/**
 * Begins to send an append before all of it is prepared. Returns undefined if the writer thread is busy, so that no
 * time would be gained, or takes no pieces.
 */
export type StartPieces = (append: SentAppend) => PieceSender | undefined;

/**
 * Creates the function that begins to send a large append in pieces. `sent` holds the jobs of each request that was
 * sent.
 */
export function createStartPieces(
  { clock, isFollowed, sendPiece }: PieceOptions,
  isIdle: () => boolean,
  load: Load,
  sent: Job[][],
): StartPieces {
  return (begun) => {
    if (sendPiece === undefined || !isIdle()) return undefined;
    // This entry of `sent` marks the thread as busy. It stays empty if the append is abandoned, because no caller then
    // waits for the reply.
    const jobs: Job[] = [];
    sent.push(jobs);
    let fieldsSent = 0;

    function send(isLast: boolean): void {
      const { fields } = begun;
      const text =
        fieldsSent === 0 ? encodeBatch(clock(), isFollowed(), [begun]) : encodePiece(fields.slice(fieldsSent));
      fieldsSent = fields.length;
      sendPiece?.({ kind: "piece", text, isLast });
    }

    const abandon = (): void => sendPiece({ kind: "abandon" });

    return {
      send: () => send(false),
      end: (append) =>
        new Promise((resolve, reject) => {
          const job: AppendJob = { kind: "append", append, resolve, reject };
          try {
            load.take(eventsOf(job), charsOf(job));
          } catch (error) {
            // Other appends have filled the queue since this one began, so it is refused and its sent pieces are
            // dropped.
            abandon();
            throw error;
          }
          jobs.push(job);
          send(true);
        }),
      abandon,
    };
  };
}
