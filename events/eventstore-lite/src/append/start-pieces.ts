import { type AppendJob, charsOf, eventsOf, type Job } from "./jobs.ts";
import type { Load } from "./load.ts";
import { encodeBatch, type Piece } from "./messages.ts";
import type { PieceSender } from "./prepare.ts";

export interface PieceOptions {
  readonly clock: () => number;
  /** Whether somebody follows the log live, and so needs the new events' hashes. */
  readonly isFollowed: () => boolean;
  /** Where the thread takes an append in pieces. */
  readonly sendPiece?: (piece: Piece) => void;
}

/**
 * Begins to send an append before it is prepared whole. Undefined: the thread has something else to do by now, so that
 * there is no time to win, or takes no pieces.
 */
export type StartPieces = () => PieceSender | undefined;

/** `sent`: the jobs of each request that was sent. */
export function createStartPieces(
  { clock, isFollowed, sendPiece }: PieceOptions,
  isIdle: () => boolean,
  load: Load,
  sent: Job[][],
): StartPieces {
  return () => {
    if (sendPiece === undefined || !isIdle()) return undefined;
    // From now on the thread is not idle. It stays empty when the append is abandoned: nobody waits for that answer.
    const jobs: Job[] = [];
    sent.push(jobs);
    let isBegun = false;

    function send(text: string, isLast: boolean): void {
      sendPiece?.({ kind: "piece", text: isBegun ? text : encodeBatch(clock(), isFollowed(), [text]), isLast });
      isBegun = true;
    }

    return {
      send: (text) => send(text, false),
      end: (append) =>
        new Promise((resolve, reject) => {
          const job: AppendJob = { kind: "append", append, resolve, reject };
          load.take(eventsOf(job), charsOf(job));
          jobs.push(job);
          send(append.text, true);
        }),
      abandon: () => sendPiece({ kind: "abandon" }),
    };
  };
}
