// These tests call the code directly.
import { expect, test } from "bun:test";
import { Registry } from "prom-client";
import { VersionConflict } from "eventstore-lite";
import { StoreFull } from "eventstore-lite/testing";
import { createAppendMetrics } from "../../src/metrics/appends.ts";
import type { EventLog } from "../../src/log/event-log.ts";
import { parseExposition } from "./parse-prometheus-text.ts";

const APPENDED = { first: 1, last: 1, version: 1, repeated: false, ids: ["id"] };

/**
 * Creates an event log with append metrics. Each append waits until the test settles its promise in `calls`; `value`
 * reads a metric.
 */
function openMeasured() {
  const registry = new Registry();
  const metrics = createAppendMetrics(registry);
  const calls: PromiseWithResolvers<typeof APPENDED>[] = [];
  const append = () => {
    const call = Promise.withResolvers<typeof APPENDED>();
    calls.push(call);
    return call.promise;
  };
  const eventLog = metrics.measured({ append } as unknown as EventLog);
  const value = async (name: string, kind?: string): Promise<number | undefined> => {
    const samples = parseExposition(await registry.metrics());
    return samples.find((sample) => sample.name === name && sample.labels["kind"] === kind)?.value;
  };
  return { metrics, calls, value, append: () => eventLog.append("requests", [], {}) };
}

test("an append is pending until it is durable, and its duration is counted", async () => {
  const { calls, value, append } = openMeasured();
  const [one, other] = [append(), append()];
  expect([await value("reachlog_appends_pending"), await value("reachlog_append_seconds_count")]).toEqual([2, 0]);
  calls[0]?.resolve(APPENDED);
  expect(await one).toEqual(APPENDED);
  expect([await value("reachlog_appends_pending"), await value("reachlog_append_seconds_count")]).toEqual([1, 1]);
  calls[1]?.resolve(APPENDED);
  await other;
  expect([await value("reachlog_appends_pending"), await value("reachlog_append_seconds_count")]).toEqual([0, 2]);
});

test("a refused append is counted by its kind, and its caller gets the refusal", async () => {
  const { calls, value, append } = openMeasured();
  const faults = [new StoreFull(), new VersionConflict("requests", 1, 2), new Error("a defect")];
  for (const [at, fault] of faults.entries()) {
    const refused = append();
    calls[at]?.reject(fault);
    expect(await refused.catch((seen: unknown) => seen)).toBe(fault);
  }
  const kinds = ["full", "busy", "fault", "overloaded"];
  expect(await Promise.all(kinds.map((kind) => value("reachlog_append_failures_total", kind)))).toEqual([1, 1, 1, 0]);
  expect([await value("reachlog_appends_pending"), await value("reachlog_append_seconds_count")]).toEqual([0, 0]);
});

test("commits are measured, and their events counted", async () => {
  const { metrics, value } = openMeasured();
  metrics.onCommit({ events: 3, ms: 2 });
  metrics.onCommit({ events: 4, ms: 6 });
  expect(await value("reachlog_commit_seconds_sum")).toBeCloseTo(0.008);
  expect([await value("reachlog_commit_seconds_count"), await value("reachlog_events_appended_total")]).toEqual([2, 7]);
});
