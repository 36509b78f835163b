import type { DispatchResult } from "../../../src/networks/network.ts";

/** Treatment of one click or text by a simulated network, and the network's answer. */
export interface Fate {
  readonly arrives: boolean;
  readonly result: DispatchResult;
  /** Time until the network's answer, in ms. */
  readonly takesMs: number;
  /** True if the network's client throws because of a defect of ours. */
  readonly throws?: true;
}

/** Properties of a simulated network. */
export interface Kind {
  /** Time in ms for which the network recognises a repeat by its id. Undefined: never. */
  readonly recognisesMs: number | undefined;
  /** Maximum number of clicks in one request to the network; undefined if it accepts no batches. */
  readonly batch: number | undefined;
  /** True for a webhook that gets an event only after all earlier events of the same stream. */
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

/**
 * Chooses at random what happens to a request at a simulated network. `known`: true if the network would recognise it
 * as a repeat.
 */
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
