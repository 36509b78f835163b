import { NETWORKS, type Network } from "./network-origins-and-refusals.ts";

/** Record of what a network received: counts all and keeps the newest. */
export interface Recorded<T> {
  add(item: T): void;
  readonly total: number;
  /** The newest items, oldest first: at least the last `keptMax`, at most twice as many. */
  readonly kept: readonly T[];
}

/** Number of messages or events to keep. It is large, because they are short and tests look for each of them. */
const TEXTS_KEPT = 10_000;

/** Number of request bodies to keep. It is small, because one request to Meta may contain 1,000 events. */
export const BODIES_KEPT = 50;

export function createRecorded<T>(keptMax = TEXTS_KEPT): Recorded<T> {
  const kept: T[] = [];
  let total = 0;
  return {
    add(item) {
      total++;
      kept.push(item);
      // Drops half of the items at once, because dropping one at each addition would copy the whole list each time.
      if (kept.length > 2 * keptMax) kept.splice(0, keptMax);
    },
    get total() {
      return total;
    },
    kept,
  };
}

/** Counts of the requests to one network, and of its answers. */
export interface NetworkTally {
  requests: number;
  /**
   * HTTP status -> number of requests that were answered with it. Requests that a fault cut off or left hanging have
   * none.
   */
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
