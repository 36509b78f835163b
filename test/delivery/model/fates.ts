import type { DispatchResult } from "../../../src/networks/network.ts";

/** What becomes of one click or text at a network: what the network does, and what it says. */
export interface Fate {
  readonly arrives: boolean;
  readonly result: DispatchResult;
  /** Until the answer comes, in ms. */
  readonly takesMs: number;
  /** The client throws, which is a defect of ours. */
  readonly throws?: true;
}

/** How a network is. `recognisesMs`: it knows a repeat by its id for so long; `batch`: the most clicks of one request. */
export interface Kind {
  readonly recognisesMs: number | undefined;
  readonly batch: number | undefined;
  /** Of the webhook: each event waits for those before it. */
  readonly isInOrder?: boolean;
}

const DELIVERED: DispatchResult = { outcome: "delivered", status: 200 };
export const WELL: Fate = { arrives: true, result: DELIVERED, takesMs: 0 };

const IN_DOUBT: DispatchResult = { outcome: "in_doubt", detail: "no answer in time" };
const SILENT: DispatchResult = { outcome: "retryable", detail: "no answer in time", mayHaveArrived: true };

const refused = (channel: boolean): DispatchResult => ({ outcome: "refused", detail: "no", status: 410, channel });
const failed = (status: number, retryAfterMs?: number): DispatchResult => {
  return { outcome: "retryable", detail: "not now", status, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
};

/** Draws a fate; `known`: the network would recognise a repeat of this request. */
export function drawFate(random: () => number, known: boolean): Fate {
  const takesMs = random() < 0.3 ? Math.floor(random() * 5_000) : 0;
  const silent = (arrives: boolean): Fate => ({ arrives, result: known ? SILENT : IN_DOUBT, takesMs: 5_000 });
  const fates: readonly (readonly [number, () => Fate])[] = [
    [50, () => ({ ...WELL, takesMs })],
    [4, () => ({ ...WELL, result: { ...DELIVERED, pauseMs: 60_000 } as DispatchResult, takesMs })],
    [8, () => silent(true)],
    [8, () => silent(false)],
    [8, () => ({ arrives: false, result: failed(503), takesMs })],
    [6, () => ({ arrives: false, result: failed(429), takesMs })],
    [4, () => ({ arrives: false, result: failed(429, Math.ceil(random() * 120_000)), takesMs })],
    [1, () => ({ arrives: false, result: failed(429, 3_600_000), takesMs })],
    [4, () => ({ arrives: false, result: refused(false), takesMs })],
    [2, () => ({ arrives: false, result: refused(true), takesMs })],
    [2, () => ({ arrives: false, result: { outcome: "skipped", reason: "too_old" }, takesMs: 0 })],
    [1, () => ({ arrives: random() < 0.5, result: IN_DOUBT, takesMs, throws: true })],
  ];
  let left = random() * fates.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, make] of fates) if ((left -= weight) < 0) return make();
  return WELL;
}
