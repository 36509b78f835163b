import type { Registry } from "prom-client";
import type { Commit } from "eventstore-lite";
import { classifyError } from "../log/classify-store-error.ts";
import type { EventLog } from "../log/event-log.ts";
import { createCounter, createHistogram, lookUp } from "./register-instruments.ts";

/**
 * Buckets of the histogram, in seconds. A fast disk syncs in half a millisecond; after a few seconds callers give up.
 */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** Creates the metrics of how long events take to become durable. */
export function createAppendMetrics(registry: Registry) {
  let pending = 0;
  const seconds = createHistogram(
    registry,
    BUCKETS,
    "reachlog_append_seconds",
    "From the call until the events are durable.",
  );
  const failures = createCounter(
    registry,
    "reachlog_append_failures_total",
    "Appends that failed, by kind; busy: another append to the stream came first, and the decision was retried.",
    ["kind"],
  );
  for (const kind of ["full", "overloaded", "in_doubt", "fault"]) failures.inc({ kind }, 0);
  lookUp(registry, [["reachlog_appends_pending", "Appends that are not durable yet.", () => pending]]);
  const commitSeconds = createHistogram(
    registry,
    BUCKETS,
    "reachlog_commit_seconds",
    "One transaction of the log, its fsync included: all appends that arrived during the previous one.",
  );
  const events = createCounter(registry, "reachlog_events_appended_total", "Events that became durable.");

  return {
    measured: (eventLog: EventLog): EventLog => ({
      ...eventLog,
      append(...args) {
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
      },
    }),
    onCommit(commit: Commit): void {
      commitSeconds.observe(commit.ms / 1_000);
      events.inc(commit.events);
    },
  };
}
