// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { BEARER, exported, openInstallation, stop, until } from "../harness/process.ts";
import { attributesOf, startCollector } from "../tracing/collector.ts";

const CLICK = {
  event: "click",
  domain: "go.example",
  short_code: "spring",
  original_url: "https://shop.example/?who=a-visitor",
  ip: "192.0.2.77",
  user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
};
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";

test("a click is one trace from its request to the append and each dispatch", async () => {
  await using collector = startCollector();
  await using world = await openInstallation();
  const service = await world.host({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
  const caller = `00-${TRACE}-00f067aa0ba902b7-01`;
  const answer = await service.post("/api/tracking/event", CLICK, { traceparent: caller });
  const pending = async () => {
    const { channels } = (await (await service.get("/api/health")).json()) as {
      channels: Record<string, { pending: number }>;
    };
    return Object.values(channels).reduce((sum, channel) => sum + channel.pending, 0);
  };
  await until(pending, (count) => count === 0);
  expect(await stop(service)).toBe(0);

  const spans = collector.spans.filter(({ traceId }) => traceId === TRACE);
  const request = spans.find(({ name }) => name === "POST /api/tracking/event");
  expect(request?.parentSpanId).toBe("00f067aa0ba902b7");
  const below = spans.filter(({ parentSpanId }) => parentSpanId === request?.spanId);
  expect(below.map(({ name }) => name).sort()).toEqual([
    "append",
    "dispatch ads",
    "dispatch chat",
    "dispatch messaging",
  ]);
  expect(spans).toHaveLength(5);
  const stored = (await exported(world)).find(({ type }) => type === "LinkClicked");
  const own = `00-${TRACE}-${request?.spanId}-01`;
  expect([answer.headers.get("traceparent"), stored?.meta["traceparent"]]).toEqual([own, own]);
  const append = below.find(({ name }) => name === "append");
  expect(append && attributesOf(append)["reachlog.position"]).toBe(stored?.position as number);
  // Supervisors' probes create no spans, and no span contains data that a caller sent.
  expect(collector.spans.some(({ name }) => name.includes("health"))).toBe(false);
  expect(collector.posted.join().match(/192\.0\.2\.77|a-visitor|Firefox|go\.example/)).toBeNull();
});

test("with a sampling share of zero only authenticated requests are traced", async () => {
  await using collector = startCollector();
  await using world = await openInstallation();
  const service = await world.host({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_SAMPLER_ARG: "0" });
  const traced = (traceId: string) => ({ traceparent: `00-${traceId}-00f067aa0ba902b7-01` });
  const [known, stranger, wrong] = ["1", "2", "3"].map((digit) => digit.repeat(32)) as [string, string, string];
  const path = "/api/tracking/event";
  const answers = await Promise.all([
    service.post(path, CLICK, { ...traced(known), ...BEARER }),
    service.post(path, CLICK, traced(stranger)),
    service.post(path, CLICK, { ...traced(wrong), authorization: "Bearer of-no-caller" }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 401]);
  // Each answer continues the trace of its request. The flag at its end says if a collector receives the trace.
  const [one, ...others] = answers.map(({ headers }) => headers.get("traceparent") ?? "");
  expect(one).toMatch(/^00-1{32}-.*-01$/);
  expect(others).toEqual([expect.stringMatching(/^00-2{32}-.*-00$/), expect.stringMatching(/^00-3{32}-.*-00$/)]);
  expect(await stop(service)).toBe(0);
  expect(new Set(collector.spans.map(({ traceId }) => traceId))).toEqual(new Set([known]));
});

test("without a collector the caller's traceparent is returned unchanged", async () => {
  await using world = await openInstallation();
  const service = await world.host();
  const caller = `00-${TRACE}-00f067aa0ba902b7-01`;
  const answer = await service.post("/api/tracking/event", CLICK, { traceparent: caller });
  expect(answer.headers.get("traceparent")).toBe(caller);
});

test("an invalid collector address is refused", async () => {
  await using world = await openInstallation();
  const child = world.start(["serve"], { OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318", OTEL_TRACES_SAMPLER_ARG: "2" });
  const [code, err] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  expect([code, err]).toEqual([78, expect.stringContaining("OTEL_EXPORTER_OTLP_ENDPOINT")]);
  expect(err).toContain("OTEL_TRACES_SAMPLER_ARG");
});

test("a failing collector and its recovery are logged once each, and doctor --online checks it", async () => {
  await using world = await openInstallation();
  let [status, asked] = [404, 0];
  using collector = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch() {
      asked += 1;
      return new Response(null, { status });
    },
  });
  // This address is wrong: the exporter appends the path of traces itself.
  world.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = `${collector.url.origin}/v1/traces`;
  const service = await world.host();
  const exportTwice = async (): Promise<void> => {
    asked = 0;
    await until(
      async () => {
        await service.post("/api/tracking/event", CLICK);
        return asked;
      },
      (count) => count >= 2,
    );
  };
  await exportTwice();
  const ill = await world.command("doctor", "--online");
  expect([ill.code, ill.out]).toEqual([
    1,
    expect.stringMatching(/^WRONG {3}traces: .* answers \S+\/v1\/traces\/v1\/traces with 404: .* is its base URL/m),
  ]);
  status = 200;
  await exportTwice();
  expect((await world.command("doctor", "--online")).out).toMatch(/^ok {6}traces: the collector accepts traces at /m);
  expect(await stop(service)).toBe(0);
  const lines = [
    "the collector accepts no traces: check OTEL_EXPORTER_OTLP_ENDPOINT",
    "the collector accepts traces again",
  ];
  expect(lines.map((line) => service.log().split(line).length - 1)).toEqual([1, 1]);
  expect(service.log()).toMatch(/accepts no traces[^\n]*"status":404/);
});
