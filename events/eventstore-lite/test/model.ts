import type { ExpectedVersion } from "../src/event-store-interface.ts";

/** Action of a caller on a store, as the property test generates it. */
export type Step =
  | {
      readonly kind: "append";
      readonly stream: string;
      readonly expected: ExpectedVersion;
      readonly count: number;
      readonly isLarge: boolean;
      readonly key: string | undefined;
      /** Fencing token of the append, for the model's only lease; undefined if the append is not fenced. */
      readonly token: number | undefined;
    }
  | { readonly kind: "acquire"; readonly holder: string; readonly steal: boolean }
  | { readonly kind: "release"; readonly token: number }
  | { readonly kind: "pass"; readonly ms: number };

interface Outcome {
  readonly first: number;
  readonly last: number;
  readonly version: number;
  readonly repeated: boolean;
}

/** Model of a log in memory, with one lease, that says what a store should answer. */
export interface Model {
  /**
   * Returns what a store should answer to a step: the outcome or refusal of an append, the token of a lease, undefined
   * if another holder has the lease, or `released`.
   */
  answer(step: Exclude<Step, { kind: "pass" }>, nowMs: number): unknown;
  head(): number;
}

export function createModel(head: number, ttlMs: number): Model {
  const versions = new Map<string, number>();
  const kept = new Map<string, Outcome>();
  const lease = { holder: "", token: 0, expiresAt: -Infinity };

  function append({ stream, expected, count, key, token }: Extract<Step, { kind: "append" }>, nowMs: number): unknown {
    const known = key === undefined ? undefined : kept.get(key);
    if (known) return { ...known, repeated: true };
    if (token !== undefined && (token !== lease.token || lease.expiresAt <= nowMs)) return "lease lost";
    const actual = versions.get(stream) ?? 0;
    if (!isExpected(actual, expected)) return { actual };
    const outcome = { first: head + 1, last: head + count, version: actual + count, repeated: false };
    head += count;
    versions.set(stream, outcome.version);
    if (key !== undefined) kept.set(key, outcome);
    return outcome;
  }

  return {
    head: () => head,
    answer(step, nowMs) {
      if (step.kind === "append") return append(step, nowMs);
      if (step.kind === "release") {
        if (step.token === lease.token) lease.expiresAt = -Infinity;
        return "released";
      }
      const leftMs = lease.expiresAt - nowMs;
      const isHeld = leftMs > 0 && leftMs <= 2 * ttlMs;
      const isRenewed = leftMs > 0 && lease.holder === step.holder;
      if (isHeld && !isRenewed && !step.steal) return undefined;
      if (!isRenewed) lease.token += 1;
      Object.assign(lease, { holder: step.holder, expiresAt: nowMs + ttlMs });
      return lease.token;
    },
  };
}

function isExpected(actual: number, expected: ExpectedVersion): boolean {
  if (expected === "any") return true;
  if (expected === "none") return actual === 0;
  if (expected === "exists") return actual > 0;
  return actual === expected;
}
