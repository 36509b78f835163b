// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { codec, makeEvent } from "../../events/event-types-and-codec.ts";
import { isFinal } from "../../events/dispatches-requested-by-events.ts";
import {
  type Attempt,
  DISPATCH_ATTEMPTS_MAX,
  decideAttemptOutcome,
  retryDelayMs,
} from "../../src/delivery/attempt-outcome.ts";
import type { DispatchResult } from "../../src/networks/network.ts";
import * as fc from "fast-check";

const ID = "019a9f00-0000-7000-8000-000000000001";
const NOW = Date.parse("2026-11-20T10:00:00.000Z");

function decide(result: DispatchResult, attempt: Partial<Attempt> = {}) {
  const common = { lane: "direct", isTest: false, number: 3, mode: "single", latencyMs: 12, now: NOW } as const;
  const outcome = decideAttemptOutcome({ ...common, random: 0.5, ...attempt }, result);
  const { type, request } = outcome;
  const data = { channel: "messaging", lane: "direct", low_watermark: 0, requests: [{ sources: [42], ...request }] };
  // Checks that the data of each decided event fits the event's schema.
  void codec.encode([makeEvent(type, ID, data as never, {})]);
  return outcome;
}

const base = { attempt: 3, mode: "single" };

const ends: [string, DispatchResult, string, object][] = [
  ["delivered", { outcome: "delivered", status: 200 }, "DispatchSucceeded", { status: 200, latency_ms: 12 }],
  [
    "delivered with the network's id",
    { outcome: "delivered", status: 201, networkId: "7" },
    "DispatchSucceeded",
    { status: 201, latency_ms: 12, network_id: "7" },
  ],
  ["skipped", { outcome: "skipped", reason: "no_user_agent" }, "DispatchSkipped", { reason: "no_user_agent" }],
  ["in doubt", { outcome: "in_doubt", detail: "d" }, "DispatchInDoubt", { detail: "d" }],
  [
    "in doubt by an answer",
    { outcome: "in_doubt", detail: "d", status: 502 },
    "DispatchInDoubt",
    { detail: "d", status: 502, latency_ms: 12 },
  ],
  [
    "refused",
    { outcome: "refused", detail: "d", status: 400, channel: false },
    "DispatchAbandoned",
    { detail: "d", status: 400, latency_ms: 12, refused: true },
  ],
  [
    "refused with the whole channel",
    { outcome: "refused", detail: "d", channel: true },
    "DispatchAbandoned",
    { detail: "d", refused: true },
  ],
];

test.each(ends)("%s is final", (_name, result, type, data) => {
  const request = type === "DispatchSkipped" ? { attempt: 3, ...data } : { ...base, ...data };
  expect(decide(result)).toEqual({ type, request } as never);
  expect(isFinal(decide(result).type)).toBe(true);
});

describe("a retryable result", () => {
  test("is scheduled for a retry", () => {
    expect(decide({ outcome: "retryable", detail: "d", status: 503 }, { number: 1 })).toEqual({
      type: "DispatchFailed",
      request: { ...base, attempt: 1, detail: "d", status: 503, latency_ms: 12, retry_at: "2026-11-20T10:00:01.000Z" },
    } as never);
  });

  test("waits as long as the network asks", () => {
    const { request } = decide({ outcome: "retryable", detail: "d", retryAfterMs: 600_000 }, { number: 1 });
    expect(request).toMatchObject({ retry_at: "2026-11-20T10:10:00.000Z" });
  });

  test("is abandoned at the eighth attempt", () => {
    expect(decide({ outcome: "retryable", detail: "d" }, { number: 7 }).type).toBe("DispatchFailed");
    expect(decide({ outcome: "retryable", detail: "d", status: 503 }, { number: 8 })).toEqual({
      type: "DispatchAbandoned",
      request: { ...base, attempt: 8, detail: "d", status: 503, latency_ms: 12, refused: false },
    } as never);
  });

  test("is abandoned at the first attempt of a channel test", () => {
    const attempt = { isTest: true, number: 1 };
    expect(decide({ outcome: "retryable", detail: "d" }, attempt)).toMatchObject({ type: "DispatchAbandoned" });
  });
});

test("the outcome of a digest has the digest's id", () => {
  const outcome = decide({ outcome: "delivered", status: 200 }, { mode: "digest", digest: "d1" });
  expect(outcome.request).toMatchObject({ mode: "digest", digest: "d1" });
});

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const retryAfter = fc.option(fc.oneof(fc.nat(), fc.double({ noNaN: true }), fc.constant(Infinity)), { nil: undefined });

test("a retry delay is bounded for any attempt number and Retry-After", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000 }), random, retryAfter, (attempt, chance, wish) => {
      const wait = retryDelayMs(attempt, chance, wish);
      expect(wait).toBeGreaterThanOrEqual(0);
      expect(wait).toBeLessThanOrEqual(Math.max(40 * MINUTE_MS, Math.min(wish ?? 0, DAY_MS)));
      if (wish !== undefined && wish <= DAY_MS) expect(wait).toBeGreaterThanOrEqual(wish);
    }),
    { numRuns: 1000 },
  );
});

test("a retry delay is at most a day, even if the network asks for more", () => {
  expect(retryDelayMs(1, 0, 90 * DAY_MS)).toBe(DAY_MS);
});

test("full jitter ranges from zero to a ceiling that grows with each attempt", () => {
  const ceilings = Array.from({ length: DISPATCH_ATTEMPTS_MAX - 1 }, (_, index) =>
    retryDelayMs(index + 1, 1, undefined),
  );
  expect(ceilings[0]).toBe(2_000);
  expect(ceilings).toEqual(ceilings.toSorted((a, b) => a - b));
  expect(new Set(ceilings).size).toBe(ceilings.length);
  for (const [index, ceiling] of ceilings.entries()) {
    expect(retryDelayMs(index + 1, 0, undefined)).toBe(0);
    expect(Math.abs(retryDelayMs(index + 1, 0.5, undefined) - ceiling / 2)).toBeLessThanOrEqual(1);
  }
});

test("eight attempts take at most about an hour", () => {
  expect(DISPATCH_ATTEMPTS_MAX).toBe(8);
  let total = 0;
  for (let attempt = 1; attempt < DISPATCH_ATTEMPTS_MAX; attempt++)
    total += retryDelayMs(attempt, 0.999_999, undefined);
  expect(total).toBeGreaterThan(45 * MINUTE_MS);
  expect(total).toBeLessThan(70 * MINUTE_MS);
});
