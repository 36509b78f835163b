import { Counter, Histogram, type Registry } from "prom-client";
import { CHANNELS } from "../../events/channel.ts";
import type { OutcomeType } from "../../events/dispatches.ts";
import type { DispatchMetrics } from "../delivery/dispatch.ts";

const OUTCOMES: Readonly<Record<OutcomeType, string>> = {
  DispatchSucceeded: "succeeded",
  DispatchFailed: "failed",
  DispatchSkipped: "skipped",
  DispatchInDoubt: "in_doubt",
  DispatchAbandoned: "abandoned",
};

/** Seconds, up to the deadline of an attempt. */
const BUCKETS = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export function createDispatchMetrics(registry: Registry): DispatchMetrics {
  const registers = [registry];
  const dispatches = new Counter({
    name: "reachlog_dispatches_total",
    help: "Outcomes of dispatches that this process recorded; failed: it is tried again.",
    labelNames: ["channel", "outcome"],
    registers,
  });
  const seconds = new Histogram({
    name: "reachlog_dispatch_request_seconds",
    help: "One request to a channel's network, of one dispatch or of many.",
    labelNames: ["channel"],
    buckets: BUCKETS,
    registers,
  });
  for (const channel of CHANNELS) {
    for (const outcome of Object.values(OUTCOMES)) dispatches.inc({ channel, outcome }, 0);
    seconds.zero({ channel });
  }
  return {
    asked: (channel, ms) => seconds.observe({ channel }, ms / 1_000),
    recorded: (channel, type, count) => dispatches.inc({ channel, outcome: OUTCOMES[type] }, count),
  };
}
