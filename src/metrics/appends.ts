import { Counter, Histogram, type Registry } from "prom-client";
import type { Commit } from "eventstore-lite";
import { classifyError } from "../log/error-kind.ts";
import type { EventLog } from "../log/event-log.ts";
import { lookUp } from "./figures.ts";

/** Seconds. A fast disk syncs in half a millisecond; past a few seconds callers give up. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** Measures how long events take to become durable. */
export interface AppendMetrics {
  /** The same event log, measured. */
  measured(eventLog: EventLog): EventLog;
  onCommit(commit: Commit): void;
}

export function createAppendMetrics(registry: Registry): AppendMetrics {
  const registers = [registry];
  let pending = 0;
  const seconds = new Histogram({
    name: "reachlog_append_seconds",
    help: "From the call until the events are durable.",
    buckets: BUCKETS,
    registers,
  });
  const failures = new Counter({
    name: "reachlog_append_failures_total",
    help: "Appends that failed, by kind; busy: another append to the stream came first, and the decision was retried.",
    labelNames: ["kind"],
    registers,
  });
  for (const kind of ["full", "overloaded", "in_doubt", "fault"]) failures.inc({ kind }, 0);
  lookUp(registry, "reachlog_appends_pending", "Appends that are not durable yet.", () => pending);
  const commitSeconds = new Histogram({
    name: "reachlog_commit_seconds",
    help: "One transaction of the log, its fsync included: all appends that came while the one before it was under way.",
    buckets: BUCKETS,
    registers,
  });
  const events = new Counter({
    name: "reachlog_events_appended_total",
    help: "Events that became durable.",
    registers,
  });

  const append =
    (eventLog: EventLog): EventLog["append"] =>
    (...args) => {
      const startedAt = performance.now();
      pending++;
      const appended = eventLog.append(...args);
      appended.then(
        () => {
          pending--;
          seconds.observe((performance.now() - startedAt) / 1_000);
        },
        (fault: unknown) => {
          pending--;
          failures.inc({ kind: classifyError(fault) ?? "fault" });
        },
      );
      return appended;
    };

  return {
    measured: (eventLog) => ({ ...eventLog, append: append(eventLog) }),
    onCommit(commit) {
      commitSeconds.observe(commit.ms / 1_000);
      events.inc(commit.events);
    },
  };
}
