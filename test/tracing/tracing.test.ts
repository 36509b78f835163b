// These tests call the code directly.
import { expect, test } from "bun:test";
import type { EventLog } from "../../src/log/event-log.ts";
import { openTracing } from "../../src/tracing/tracing.ts";
import { attributesOf, startCollector } from "./collector.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const sampled = (span: string): string => `00-${TRACE}-${span}-01`;
const CALLER = sampled("00f067aa0ba902b7");
const UNSAMPLED = CALLER.replace(/01$/, "00");
const ADS = { channel: "ads", network: "meta", mode: "batch" } as const;

/** Returns the spans that are collected during `work`. */
async function collected(work: (tracing: ReturnType<typeof openTracing>) => void | Promise<void>, ratio = 1) {
  await using collector = startCollector();
  {
    await using tracing = openTracing({ endpoint: collector.url, ratio });
    await work(tracing);
  }
  return [...collector.spans];
}

test("a request's span is a child of its caller's, and passes its own id on", async () => {
  let traceparent = "";
  const spans = await collected((tracing) => {
    const span = tracing.request("POST /api/notify", CALLER, true);
    ({ traceparent } = span);
    span.end(202);
  });
  const [request] = spans;
  expect(spans).toHaveLength(1);
  expect(request).toMatchObject({
    name: "POST /api/notify",
    traceId: TRACE,
    parentSpanId: "00f067aa0ba902b7",
    kind: 2,
  });
  expect(traceparent).toBe(sampled(request?.spanId ?? ""));
  expect(request && attributesOf(request)).toEqual({
    "http.route": "/api/notify",
    "http.request.method": "POST",
    "http.response.status_code": 202,
  });
});

test("only a 500 marks a request's span as failed", async () => {
  const spans = await collected((tracing) => {
    for (const status of [200, 404, 500]) tracing.request("GET /social/me", CALLER, true).end(status);
  });
  expect(spans.map(({ status }) => status.code)).toEqual([0, 0, 2]);
});

test("a trusted caller's flag decides whether a trace is collected, otherwise the ratio", async () => {
  const requests = (given: string | null) => (tracing: ReturnType<typeof openTracing>) =>
    tracing.request("POST /api/notify", given, true).end(200);
  expect(await collected(requests(UNSAMPLED), 1)).toEqual([]);
  expect(await collected(requests(CALLER), 0)).toHaveLength(1);
  expect(await collected(requests(null), 0)).toEqual([]);
  expect(await collected(requests("no trace"), 1)).toHaveLength(1);
});

test("an untrusted caller's flag is followed only at the sampling ratio", async () => {
  const collectedOf = async (given: string | null, ratio: number, drawn = 0.5): Promise<number> => {
    await using collector = startCollector();
    await using tracing = openTracing({ endpoint: collector.url, ratio, random: () => drawn });
    const { traceparent, end } = tracing.request("POST /api/notify", given, false);
    if (given !== null) expect(traceparent).toStartWith(`00-${TRACE}-`);
    end(200);
    await tracing[Symbol.asyncDispose]();
    // The flag tells later parts of the trace if it is collected. It must be right.
    expect(traceparent.endsWith("-01")).toBe(collector.spans.length === 1);
    return collector.spans.length;
  };
  expect(await collectedOf(CALLER, 0)).toBe(0);
  expect(await collectedOf(CALLER, 1)).toBe(1);
  expect(await collectedOf(UNSAMPLED, 1)).toBe(0);
  expect(await collectedOf(CALLER, 0.3, 0.29)).toBe(1);
  expect(await collectedOf(CALLER, 0.3, 0.3)).toBe(0);
  expect(await collectedOf(null, 1)).toBe(1);
});

test("an append's span is a child of its cause, and is not made without a trace", async () => {
  const appended = { first: 17, last: 18, version: 1, repeated: false, ids: ["a", "b"] };
  const fault = new Error("refused");
  const spans = await collected(async (tracing) => {
    const [good, bad] = [async () => appended, async () => Promise.reject(fault)];
    const logOf = (append: unknown) => tracing.traced({ append } as EventLog);
    const event = { type: "MessageRequested", data: { text: "t" } } as const;
    expect(await logOf(good).append("requests", [event, event], { traceparent: CALLER })).toBe(appended);
    expect(
      await logOf(bad)
        .append("requests", [event], { traceparent: CALLER })
        .catch((seen: unknown) => seen),
    ).toBe(fault);
    await logOf(good).append("requests", [event], { traceparent: UNSAMPLED });
    await logOf(good).append("requests", [event], {});
  });
  expect(spans.map(({ name, parentSpanId, status }) => [name, parentSpanId, status.code])).toEqual([
    ["append", "00f067aa0ba902b7", 0],
    ["append", "00f067aa0ba902b7", 2],
  ]);
  expect(spans[0] && attributesOf(spans[0])).toEqual({
    "reachlog.events": 2,
    "reachlog.type": "MessageRequested",
    "reachlog.position": 17,
  });
});

test("a dispatch's span is a child of its request, a batch's links to each sampled request", async () => {
  const parents = ["1111111111111111", "2222222222222222"];
  const spans = await collected((tracing) => {
    tracing.dispatch({ ...ADS, mode: "single" }, [CALLER]).end(["delivered"]);
    tracing
      .dispatch(ADS, [...parents.map(sampled), UNSAMPLED, undefined])
      .end(["delivered", "retryable", "delivered", "delivered"]);
    tracing.dispatch(ADS, [UNSAMPLED, undefined]).end(["delivered", "delivered"]);
    tracing.dispatch({ ...ADS, mode: "single" }, [undefined]).end(["delivered"]);
  });
  const [single, batch] = spans;
  expect(spans).toHaveLength(2);
  expect(single).toMatchObject({ name: "dispatch ads", traceId: TRACE, parentSpanId: "00f067aa0ba902b7", kind: 3 });
  expect(batch?.traceId).not.toBe(TRACE);
  expect(batch?.links?.map(({ traceId, spanId }) => [traceId, spanId])).toEqual(parents.map((span) => [TRACE, span]));
  expect(batch?.status.code).toBe(2);
  expect(batch && attributesOf(batch)).toMatchObject({
    "reachlog.dispatches": 4,
    "reachlog.outcome": "delivered retryable",
  });
});

test("an unreachable collector neither blocks requests nor causes errors", async () => {
  await using collector = startCollector();
  const { url } = collector;
  await collector[Symbol.asyncDispose]();
  await using tracing = openTracing({ endpoint: url, ratio: 1 });
  tracing.request("POST /api/notify", null, false).end(200);
});

test("a collector that refuses traces is logged once with its status, and its recovery once", async () => {
  let status = 404;
  using collector = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(null, { status }) });
  const lines: unknown[] = [];
  const say = (message: string, fields?: object): void => void lines.push([message, fields]);
  const endpoint = collector.url.origin;
  const tracing = openTracing({ endpoint, ratio: 1, logger: { warn: say, info: say } });
  for (status of [404, 400, 404, 200, 200]) {
    tracing.request("POST /api/notify", null, true).end(200);
    await tracing.flush();
  }
  await tracing[Symbol.asyncDispose]();
  const url = `${endpoint}/v1/traces`;
  expect(lines).toEqual([
    [
      "the collector accepts no traces: check OTEL_EXPORTER_OTLP_ENDPOINT",
      expect.objectContaining({ url, status: 404 }),
    ],
    ["the collector accepts traces again", { url }],
  ]);
});
