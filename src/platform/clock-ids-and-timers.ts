import * as crypto from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { v7 } from "uuid";

/** Function that returns the time in ms since the epoch. */
export type Clock = () => number;

/** Function that creates an id for an event, run or request. It is a UUIDv7, so that ids sort by time. */
export type MakeId = () => string;

export const systemClock: Clock = () => Date.now();

/**
 * Creates a UUIDv7. The runtime's own function takes a quarter of the library's time, and each click needs an id; Deno
 * 2.9.6 has none.
 */
const uuidV7: () => string = crypto.randomUUIDv7 ?? v7;

export const makeId: MakeId = () => uuidV7();

/** Formats ms since the epoch as ISO 8601 UTC with milliseconds. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** Maximum time in ms that a timer of the runtime can wait. A longer wait uses several timers. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Function that waits `ms`, or until the signal aborts; never rejects. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

export const sleep: Sleep = async (ms, signal) => {
  for (let left = ms; left > 0 && !signal.aborted; left -= TIMER_MAX_MS) {
    await wait(Math.min(left, TIMER_MAX_MS), undefined, { signal }).catch(() => {});
  }
};

/** Exponential backoff: the first wait, the factor from one wait to the next, and the longest wait. */
interface Backoff {
  readonly baseMs: number;
  readonly factor: number;
  readonly maxMs?: number;
}

/** Returns the wait in ms after failed attempt number `attempt` (from 1), with full jitter. `random` is from 0 to 1. */
export function backoffMs(attempt: number, random: number, { baseMs, factor, maxMs = Infinity }: Backoff): number {
  return Math.round(random * Math.min(maxMs, baseMs * factor ** (attempt - 1)));
}

/** Waits for `work` for at most `ms`. Resolves as `work` does, or with undefined if it takes longer. */
export async function within<Result>(ms: number, work: Promise<Result>): Promise<Result | undefined> {
  const done = new AbortController();
  try {
    return await Promise.race([work, sleep(ms, done.signal).then(() => undefined)]);
  } finally {
    done.abort();
  }
}

/** Function that calls `run` once, `ms` from now. The function that it returns cancels the call. */
export type Timer = (run: () => void, ms: number) => () => void;

export const systemTimer: Timer = (run, ms) => {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
};
