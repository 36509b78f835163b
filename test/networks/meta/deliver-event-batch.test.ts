// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { createClock } from "../../../sandbox/clock.ts";
import { deliverBatch, EVENTS_MAX, REQUESTS_MAX } from "../../../src/networks/meta/deliver-event-batch.ts";
import { createMetaChannel } from "../../../src/networks/meta/meta-ads-channel.ts";
import type { Click, DispatchResult } from "../../../src/networks/network.ts";
import { startSandbox } from "../../../sandbox/sandbox.ts";
import { secret } from "../../../src/platform/secret.ts";
import { CLICK, NOW } from "../sample-dispatches.ts";
import { deadUrl, safeFetchTo, serve, type Seen } from "../../harness/in-process/local-test-servers.ts";

const TIMEOUT_MS = 1_000;
const DELIVERED: DispatchResult = { outcome: "delivered", status: 200 };
const REFUSED: DispatchResult = {
  outcome: "refused",
  status: 400,
  detail: "Meta answered 400, error 100",
  channel: false,
};

/** Simulated Meta that behaves as its reference says: one bad event makes it refuse the whole batch. */
function metaThatRefuses(isBad: (event: string) => boolean) {
  const requests: (readonly string[])[] = [];
  const accepted: string[] = [];
  return {
    requests,
    accepted,
    async post(events: readonly string[]): Promise<DispatchResult> {
      requests.push(events);
      if (events.some(isBad)) return REFUSED;
      accepted.push(...events);
      return DELIVERED;
    },
  };
}

const named = (count: number): string[] => Array.from({ length: count }, (_, index) => `"event ${index}"`);

/** fast-check generator of batches of up to a thousand events, of which often few and sometimes most are bad. */
const batches = fc.integer({ min: 1, max: EVENTS_MAX }).chain((count) =>
  fc.record({
    events: fc.constant(named(count)),
    bad: fc.oneof(
      fc.uniqueArray(fc.nat(count - 1), { maxLength: 5 }),
      fc.uniqueArray(fc.nat(count - 1), { maxLength: count }),
      fc.constant(Array.from({ length: count }, (_, index) => index)),
    ),
  }),
);

describe("a batch with any number of bad events", () => {
  test("delivers each good event once within the stated number of requests", async () => {
    await fc.assert(
      fc.asyncProperty(batches, async ({ events, bad }) => {
        const badOnes = new Set(bad.map((at) => events[at]));
        const meta = metaThatRefuses((event) => badOnes.has(event));
        const results = await deliverBatch(events, { timeoutMs: TIMEOUT_MS, post: meta.post, elapsedMs: () => 0 });
        const stated = 1 + 2 * bad.length * Math.ceil(Math.log2(events.length));
        expect(meta.requests.length).toBeLessThanOrEqual(Math.min(stated, REQUESTS_MAX));
        expect(new Set(meta.accepted).size).toBe(meta.accepted.length);
        const asked = results.filter(({ outcome }) => outcome !== "retryable").length;
        if (stated <= REQUESTS_MAX) expect(asked).toBe(events.length);
        const expected = events.map((event) => (badOnes.has(event) ? REFUSED : DELIVERED));
        expect(results.slice(0, asked)).toEqual(expected.slice(0, asked));
        expect(meta.accepted).toEqual(events.slice(0, asked).filter((event) => !badOnes.has(event)));
      }),
      { numRuns: 200 },
    );
  });

  test("is settled within eight attempts", async () => {
    await fc.assert(
      fc.asyncProperty(batches, async ({ events, bad }) => {
        const badOnes = new Set(bad.map((at) => events[at]));
        const meta = metaThatRefuses((event) => badOnes.has(event));
        let open = events;
        for (let attempt = 1; attempt <= 8 && open.length > 0; attempt++) {
          const results = await deliverBatch(open, { timeoutMs: TIMEOUT_MS, post: meta.post, elapsedMs: () => 0 });
          open = open.filter((_, index) => results[index]?.outcome === "retryable");
        }
        expect(open).toEqual([]);
        expect(meta.accepted).toEqual(events.filter((event) => !badOnes.has(event)));
      }),
      { numRuns: 50 },
    );
  });
});

describe("the requests of a batch", () => {
  test("end at ten times the time-out; the unsent events are retryable", async () => {
    const clock = createClock(() => 0);
    const meta = metaThatRefuses((event) => event === '"event 7"');
    const timeouts: number[] = [];
    const results = await deliverBatch(named(8), {
      timeoutMs: TIMEOUT_MS,
      elapsedMs: () => clock.now(),
      async post(events, timeoutMs) {
        timeouts.push(timeoutMs);
        clock.advance(4_000);
        return meta.post(events);
      },
    });
    expect(timeouts).toEqual([1_000, 1_000, 1_000]);
    expect(meta.requests.map(({ length }) => length)).toEqual([8, 4, 4]);
    expect(results.map(({ outcome }) => outcome)).toEqual([
      ...Array.from({ length: 4 }, () => "delivered" as const),
      ...Array.from({ length: 4 }, () => "retryable" as const),
    ]);
  });

  test("settle all events within eight batches, even if Meta refuses slowly", async () => {
    const clock = createClock(() => 0);
    const meta = metaThatRefuses((event) => event === '"event 0"');
    let open = named(8);
    for (let batch = 0; batch < 8 && open.length > 0; batch++) {
      const results = await deliverBatch(open, {
        timeoutMs: TIMEOUT_MS,
        elapsedMs: () => clock.now(),
        async post(events, timeoutMs) {
          expect(timeoutMs).toBeGreaterThan(0);
          clock.advance(6_000);
          return meta.post(events);
        },
      });
      open = open.filter((_, index) => results[index]?.outcome === "retryable");
    }
    expect(open).toEqual([]);
    expect(meta.accepted).toHaveLength(7);
  });

  test("get at most the remaining time as their time-out", async () => {
    const clock = createClock(() => 0);
    const timeouts: number[] = [];
    await deliverBatch(named(2), {
      timeoutMs: TIMEOUT_MS,
      elapsedMs: () => clock.now(),
      async post(_events, timeoutMs) {
        timeouts.push(timeoutMs);
        clock.advance(9_400);
        return REFUSED;
      },
    });
    expect(timeouts).toEqual([1_000, 600]);
  });

  test.each<[string, DispatchResult]>([
    ["a temporary fault", { outcome: "retryable", detail: "no answer in time" }],
    ["a throttle", { outcome: "retryable", status: 400, detail: "error 80004", retryAfterMs: 60_000 }],
    ["a fault of the channel", { outcome: "refused", status: 400, detail: "error 190", channel: true }],
  ])("end with %s and leave the unsent events retryable", async (_name, end) => {
    const meta = metaThatRefuses((event) => event === '"event 0"');
    let asked = 0;
    const results = await deliverBatch(named(8), {
      timeoutMs: TIMEOUT_MS,
      post: async (events) => (++asked > 4 ? end : meta.post(events)),
      elapsedMs: () => 0,
    });
    expect(asked).toBe(5);
    expect(results.slice(0, 2)).toEqual([REFUSED, end]);
    const pause = end.outcome === "retryable" && end.retryAfterMs !== undefined ? { retryAfterMs: 60_000 } : {};
    const detail = "the network was not asked: the request before it failed";
    const unasked = { outcome: "retryable" as const, detail, unasked: true as const, ...pause };
    expect(results.slice(2)).toEqual(Array.from({ length: 6 }, () => unasked));
  });

  test("end with the first if it refuses the whole channel", async () => {
    const end: DispatchResult = { outcome: "refused", status: 400, detail: "error 190", channel: true };
    let asked = 0;
    const results = await deliverBatch(named(8), {
      timeoutMs: TIMEOUT_MS,
      post: async () => (asked++, end),
      elapsedMs: () => 0,
    });
    expect([asked, results]).toEqual([1, Array.from({ length: 8 }, () => end)]);
  });

  test("are split beforehand so that none exceeds 1 MiB", async () => {
    const meta = metaThatRefuses(() => false);
    const events = Array.from({ length: EVENTS_MAX }, (_, index) => `"${index}${"ä".repeat(2_500)}"`);
    const results = await deliverBatch(events, { timeoutMs: TIMEOUT_MS, post: meta.post, elapsedMs: () => 0 });
    expect(results).toEqual(events.map(() => DELIVERED));
    expect(meta.accepted).toEqual(events);
    const sizes = meta.requests.map((part) => Buffer.byteLength(part.join("")));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1024 * 1024);
    expect(sizes.length).toBe(5);
  });

  test("hold a thousand events of usual size", async () => {
    const meta = metaThatRefuses(() => false);
    await deliverBatch(
      named(EVENTS_MAX).map((event) => event.padEnd(1_000)),
      { timeoutMs: TIMEOUT_MS, post: meta.post, elapsedMs: () => 0 },
    );
    expect(meta.requests).toHaveLength(1);
  });

  test("an empty batch has no results", async () => {
    expect(await deliverBatch([], { timeoutMs: TIMEOUT_MS, post: metaThatRefuses(() => false).post })).toEqual([]);
  });
});

describe("clicks in one request", () => {
  const OPTIONS = { timeoutMs: TIMEOUT_MS, now: NOW };
  const click = (at: number, more: Partial<Click> = {}): Click => ({
    ...CLICK,
    id: `019a9f00-0000-7000-8000-${String(at).padStart(12, "0")}`,
    ...more,
  });

  function batchAt(baseUrl: string, testEventCode?: string) {
    const options = { pixelId: "1", accessToken: secret("token"), baseUrl, safeFetch: safeFetchTo(baseUrl) };
    const { batch } = createMetaChannel({ ...options, testEventCode });
    if (batch === undefined) throw new Error("Meta takes batches");
    return batch;
  }

  const idsOf = ({ body }: Seen): string[] =>
    (JSON.parse(body) as { data: { event_id: string }[] }).data.map(({ event_id }) => event_id);

  test("have their results in order, and skipped clicks are not sent", async () => {
    await using server = serve(() => Response.json({ events_received: 2, fbtrace_id: "A1b" }));
    const old = new Date(NOW - 7 * 24 * 60 * 60_000 - 1).toISOString();
    const clicks = [click(1, { userAgent: " " }), click(2), click(3, { time: old }), click(4)];
    expect(await batchAt(server.url, "TEST7").send(clicks, OPTIONS)).toEqual([
      { outcome: "skipped", reason: "no_user_agent" },
      { outcome: "delivered", status: 200, networkId: "A1b" },
      { outcome: "skipped", reason: "too_old" },
      { outcome: "delivered", status: 200, networkId: "A1b" },
    ]);
    const [request] = server.requests;
    if (request === undefined || server.requests.length !== 1) throw new Error("one request was expected");
    expect(idsOf(request)).toEqual([click(2).id, click(4).id]);
    expect(JSON.parse(request.body)).toMatchObject({ test_event_code: "TEST7", access_token: "token" });
  });

  test("make no request if all are skipped", async () => {
    await using server = serve(() => Response.json({ events_received: 0 }));
    const results = await batchAt(server.url).send([click(1, { userAgent: undefined })], OPTIONS);
    expect(results).toEqual([{ outcome: "skipped", reason: "no_user_agent" }]);
    expect(server.requests).toEqual([]);
  });

  test("are all retryable if Meta counts fewer than were sent", async () => {
    await using server = serve(() => Response.json({ events_received: 1 }));
    const results = await batchAt(server.url).send([click(1), click(2)], OPTIONS);
    expect(results.map(({ outcome }) => outcome)).toEqual(["retryable", "retryable"]);
    expect(server.requests).toHaveLength(1);
  });

  test("are all retryable if Meta does not listen", async () => {
    const results = await batchAt(await deadUrl()).send([click(1), click(2)], OPTIONS);
    expect(results.map(({ outcome }) => outcome)).toEqual(["retryable", "retryable"]);
  });

  test("are halved after a 413", async () => {
    await using server = serve((seen) =>
      idsOf(seen).length > 2 ? new Response("", { status: 413 }) : Response.json({ events_received: 2 }),
    );
    const results = await batchAt(server.url).send(
      [1, 2, 3, 4].map((at) => click(at)),
      OPTIONS,
    );
    expect(results.map(({ outcome }) => outcome)).toEqual(Array.from({ length: 4 }, () => "delivered" as const));
  });

  test("count once each at Meta, though sent twice with bad ones among them", async () => {
    await using sandbox = await startSandbox({ clock: () => NOW });
    const { credentials, urls } = sandbox;
    const { batch } = createMetaChannel({
      pixelId: credentials.metaPixelId,
      accessToken: secret(credentials.metaAccessToken),
      baseUrl: urls.meta,
      safeFetch: safeFetchTo(urls.meta),
    });
    const bad = new Set([3, 4, 20]);
    const clicks = Array.from({ length: 40 }, (_, at) => click(at, bad.has(at) ? { normalizedUrl: "x-app:sale" } : {}));
    for (let times = 0; times < 2; times++) {
      const results = await batch?.send(clicks, OPTIONS);
      const expected = clicks.map((_, at) => (bad.has(at) ? "refused" : "delivered"));
      expect(results?.map(({ outcome }) => outcome)).toEqual(expected);
    }
    const { kept, total } = sandbox.meta.events;
    expect(kept.map(({ event_id }) => event_id)).toEqual(clicks.filter((_, at) => !bad.has(at)).map(({ id }) => id));
    expect([total, sandbox.meta.accepted]).toEqual([37, 74]);
  });
});
