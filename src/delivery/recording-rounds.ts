import { nextRound } from "./coalescing-scheduler.ts";

/** What one channel has to record. */
interface Recording {
  /** Dispatches that were answered and wait for it. */
  waiting(): number;
  /** Never rejects. */
  write(): Promise<void>;
}

/** Records with the next round; resolves when all that were recorded in it are. */
export type RecordTogether = (recording: Recording) => Promise<void>;

/** Iterations of the event loop that a round gathers for, whatever they bring: what was answered is not kept from the log. */
export const GATHERING_ITERATIONS_MAX = 4;

/**
 * Lets all channels record at once, so that their outcomes share a transaction: one by one they come by turns, each while
 * another one's is written, and each takes a sync of its own. A round begins when the one before it has ended, and
 * gathers as long as each iteration of the event loop brings more, until a channel has `enough`.
 */
export function createRecordingRounds(enough: number): RecordTogether {
  let last = Promise.resolve();
  let next: { readonly recordings: Recording[]; readonly ended: Promise<void> } | undefined;

  const run = async (recordings: readonly Recording[], before: Promise<void>): Promise<void> => {
    await before;
    const count = (): number => recordings.reduce((sum, { waiting }) => sum + waiting(), 0);
    for (let iteration = 0, counted = 0; iteration < GATHERING_ITERATIONS_MAX && count() > counted; iteration++) {
      counted = count();
      await nextRound();
      if (recordings.some(({ waiting }) => waiting() >= enough)) break;
    }
    next = undefined;
    await Promise.all(recordings.map(({ write }) => write()));
  };

  return (recording) => {
    if (next === undefined) {
      const recordings: Recording[] = [];
      last = run(recordings, last);
      next = { recordings, ended: last };
    }
    next.recordings.push(recording);
    return next.ended;
  };
}
