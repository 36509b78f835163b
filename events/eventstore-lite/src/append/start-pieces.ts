import { type AppendJob, charsOf, eventsOf, type Job } from "./jobs.ts";
import type { Load } from "./load.ts";
import { encodeBatch, encodePiece, type Piece, type SentAppend } from "./messages.ts";
import type { PieceSender } from "./prepare.ts";

export interface PieceOptions {
  readonly clock: () => number;
  /** Whether a subscriber follows the log live, and so needs the new events' hashes. */
  readonly isFollowed: () => boolean;
  /** Where the thread takes an append in pieces. */
  readonly sendPiece?: (piece: Piece) => void;
}

/**
 * Begins to send an append before it is prepared whole. Undefined: the thread has something else to do by now, so that
 * there is no time to win, or takes no pieces.
 */
export type StartPieces = (append: SentAppend) => PieceSender | undefined;

/** `sent`: the jobs of each request that was sent. */
export function createStartPieces(
  { clock, isFollowed, sendPiece }: PieceOptions,
  isIdle: () => boolean,
  load: Load,
  sent: Job[][],
): StartPieces {
  return (begun) => {
    if (sendPiece === undefined || !isIdle()) return undefined;
    // From now on the thread is not idle. It stays empty when the append is abandoned: no caller waits for that answer.
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
            // Others were accepted since it was begun.
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
