// On no harness.
import { describe, expect, test } from "bun:test";
import { codec, makeEvent } from "../../events/catalog.ts";
import { isFinal } from "../../events/dispatches.ts";
import { decideOutcome, type Attempt } from "../../src/delivery/attempt.ts";
import type { DispatchResult } from "../../src/networks/network.ts";

const ID = "019a9f00-0000-7000-8000-000000000001";
const NOW = Date.parse("2026-11-20T10:00:00.000Z");

function decide(result: DispatchResult, attempt: Partial<Attempt> = {}) {
  const common = { lane: "direct", isTest: false, number: 3, mode: "single", latencyMs: 12, now: NOW } as const;
  const outcome = decideOutcome({ ...common, random: 0.5, ...attempt }, result);
  const { type, request } = outcome;
  const data = { channel: "messaging", lane: "direct", low_watermark: 0, requests: [{ sources: [42], ...request }] };
  // Whatever is decided has to fit the schema of its event.
  void codec.encode([makeEvent(type, ID, data as never, {})]);
  return outcome;
}

const base = { attempt: 3, mode: "single" };

const ends: [string, DispatchResult, string, object][] = [
  ["delivered", { outcome: "delivered", status: 200 }, "DispatchSucceeded", { status: 200, latency_ms: 12 }],
  [
    "delivered under an id of the network's",
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

describe("what may be tried again", () => {
  test("waits for its time", () => {
    expect(decide({ outcome: "retryable", detail: "d", status: 503 }, { number: 1 })).toEqual({
      type: "DispatchFailed",
      request: { ...base, attempt: 1, detail: "d", status: 503, latency_ms: 12, retry_at: "2026-11-20T10:00:01.000Z" },
    } as never);
  });

  test("waits as long as the network asks for", () => {
    const { request } = decide({ outcome: "retryable", detail: "d", retryAfterMs: 600_000 }, { number: 1 });
    expect(request).toMatchObject({ retry_at: "2026-11-20T10:10:00.000Z" });
  });

  test("is given up with the eighth attempt", () => {
    expect(decide({ outcome: "retryable", detail: "d" }, { number: 7 }).type).toBe("DispatchFailed");
    expect(decide({ outcome: "retryable", detail: "d", status: 503 }, { number: 8 })).toEqual({
      type: "DispatchAbandoned",
      request: { ...base, attempt: 8, detail: "d", status: 503, latency_ms: 12, refused: false },
    } as never);
  });

  test("is given up at once when it is a test", () => {
    const attempt = { isTest: true, number: 1 };
    expect(decide({ outcome: "retryable", detail: "d" }, attempt)).toMatchObject({ type: "DispatchAbandoned" });
  });
});

test("the clicks of a digest have its id", () => {
  const outcome = decide({ outcome: "delivered", status: 200 }, { mode: "digest", digest: "d1" });
  expect(outcome.request).toMatchObject({ mode: "digest", digest: "d1" });
});
