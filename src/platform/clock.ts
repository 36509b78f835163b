/** Milliseconds since the epoch. */
export type Clock = () => number;

/** Makes event, run and request ids: UUIDv7, so that they sort by time. */
export type MakeId = () => string;

export const systemClock: Clock = () => Date.now();

export const makeId: MakeId = () => Bun.randomUUIDv7();

/** ISO 8601 UTC with milliseconds. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** The longest a timer of the runtime can wait; longer waits are made of several. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Waits `ms`, or until the signal aborts; never rejects. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  for (let left = ms; left > 0 && !signal.aborted; left -= TIMER_MAX_MS) {
    await sleepOnce(Math.min(left, TIMER_MAX_MS), signal);
  }
}

function sleepOnce(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}
