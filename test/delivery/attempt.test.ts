// On no harness.
import { describe, expect, test } from "bun:test";
import { codec, makeEvent, type DataOf, type EventType, type Recorded } from "../../events/catalog.ts";
import { decideOutcome, type Attempt } from "../../src/delivery/attempt.ts";
import type { DispatchResult } from "../../src/networks/network.ts";

const ID = "019a9f00-0000-7000-8000-000000000001";
const NOW = Date.parse("2026-11-20T10:00:00.000Z");

function owing<T extends EventType>(type: T, data: DataOf<T>): Recorded {
  const stored = { position: 42, stream: "s", version: 1, time: "2026-11-20T09:59:00.000Z", hash: "" };
  return { ...makeEvent(type, ID, data, {}), ...stored };
}

const message = owing("MessageRequested", { text: "hello" });

function decide(result: DispatchResult, attempt: Partial<Attempt> = {}) {
  const outcome = decideOutcome(
    {
      channel: "messaging",
      lane: "direct",
      event: message,
      number: 3,
      latencyMs: 12,
      now: NOW,
      random: 0.5,
      ...attempt,
    },
    result,
  );
  const { type, data } = outcome.newEvent;
  // Whatever is decided has to fit the schema of its event.
  codec.encode(makeEvent(type, ID, data as never, {}));
  return outcome;
}

const base = { event_id: ID, owed: 42, channel: "messaging", lane: "direct", attempt: 3, low_watermark: 0 };

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
  expect(decide(result)).toEqual({ newEvent: { type, data: { ...base, ...data } }, final: true } as never);
});

describe("what may be tried again", () => {
  test("waits for its time", () => {
    expect(decide({ outcome: "retryable", detail: "d", status: 503 }, { number: 1 })).toEqual({
      newEvent: {
        type: "DispatchFailed",
        data: { ...base, attempt: 1, detail: "d", status: 503, latency_ms: 12, retry_at: "2026-11-20T10:00:01.000Z" },
      },
      final: false,
    } as never);
  });

  test("waits as long as the network asks for", () => {
    const { newEvent } = decide({ outcome: "retryable", detail: "d", retryAfterMs: 600_000 }, { number: 1 });
    expect(newEvent.data).toMatchObject({ retry_at: "2026-11-20T10:10:00.000Z" });
  });

  test("is given up with the eighth attempt", () => {
    expect(decide({ outcome: "retryable", detail: "d" }, { number: 7 }).final).toBe(false);
    expect(decide({ outcome: "retryable", detail: "d", status: 503 }, { number: 8 })).toEqual({
      newEvent: {
        type: "DispatchAbandoned",
        data: { ...base, attempt: 8, detail: "d", status: 503, latency_ms: 12, refused: false },
      },
      final: true,
    } as never);
  });

  test("is given up at once when it is a test", () => {
    const event = owing("ChannelTestRequested", { channels: ["messaging"] });
    expect(decide({ outcome: "retryable", detail: "d" }, { event, number: 1 })).toMatchObject({
      newEvent: { type: "DispatchAbandoned" },
      final: true,
    });
  });
});

test("the outcome of a retried letter names the event that it began with, and settles the retry", () => {
  const event = owing("DispatchRetryRequested", { event_id: "first", source: 7, channel: "messaging" });
  const { newEvent } = decide({ outcome: "delivered", status: 200 }, { event });
  expect(newEvent.data).toMatchObject({ event_id: "first", owed: 42 });
});
