import { NETWORKS, type Network } from "./network.ts";

/** Requests to one network, and what became of them. */
export interface NetworkTally {
  requests: number;
  /** Requests that were answered with each status. One that a fault cut off or left hanging has none. */
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
