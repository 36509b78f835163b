import { NETWORKS, type Network } from "./network.ts";

/** A record of arrivals that counts all of them and keeps the newest. */
export interface Recorded<T> {
  add(item: T): void;
  readonly total: number;
  /** Oldest first; at least the last `keptMax`, at most twice as many. */
  readonly kept: readonly T[];
}

/** Many, because texts and events are short and tests look for each of them. */
const TEXTS_KEPT = 10_000;

/** Few, because one request of Meta's may contain 1,000 events. */
export const BODIES_KEPT = 50;

export function createRecorded<T>(keptMax = TEXTS_KEPT): Recorded<T> {
  const kept: T[] = [];
  let total = 0;
  return {
    add(item) {
      total++;
      kept.push(item);
      // Drops half of them at once, because a shift each time would copy the whole list.
      if (kept.length > 2 * keptMax) kept.splice(0, keptMax);
    },
    get total() {
      return total;
    },
    kept,
  };
}

/** Requests to one network, and their outcomes. */
export interface NetworkTally {
  requests: number;
  /** Number of requests answered with each status. Requests that a fault cut off or left hanging have none. */
  readonly answers: Record<number, number>;
}

export type Tally = Readonly<Record<Network, NetworkTally>>;

export function createTally(): Tally {
  const entries = NETWORKS.map((network) => [network, { requests: 0, answers: {} }] as const);
  return Object.fromEntries(entries) as Record<Network, NetworkTally>;
}

export function countAnswer({ answers }: NetworkTally, status: number): void {
  answers[status] = (answers[status] ?? 0) + 1;
}
