import type { Registry } from "prom-client";
import type { LogStore } from "../../events/event-types-and-codec.ts";
import { CHANNELS, lanesOf, sortChannels, type ChannelName } from "../../events/channel-and-lane-names.ts";
import type { OutcomeType } from "../../events/dispatches-requested-by-events.ts";
import { channelsOf, type ChannelState } from "../../projections/deliveries.ts";
import type { Circuit } from "../delivery/pace-and-circuit-breaker.ts";
import type { Delivery } from "../delivery/wait-for-outcome.ts";
import type { DispatchMetrics } from "../delivery/attempt-dispatches.ts";
import { readOldestPending } from "../delivery/channel-lag.ts";
import type { Clock } from "../platform/clock-ids-and-timers.ts";
import type { Projector } from "../projector/projector.ts";
import { createCounter, createHistogram, lookUpEach } from "./register-instruments.ts";

/**
 * Maximum number of events read to find the oldest pending dispatch of a lane (queue of a channel), whose age is a
 * metric. Usually the first event that is read requested it. If none of them did, the metric shows 0.
 */
const OLDEST_EVENTS_MAX = 10_000;

const CIRCUITS: readonly Circuit[] = ["closed", "open", "half_open"];

const OF_LANE = ["channel", "lane"] as const;
const OF_CHANNEL = ["channel"] as const;

export interface ChannelSources {
  readonly store: LogStore;
  readonly projector: Projector;
  readonly delivery: Delivery;
  readonly clock: Clock;
}

/** Registers metrics of each channel's state, read from the log. Every instance reports the same values. */
export function observeChannels(registry: Registry, { store, projector, delivery, clock }: ChannelSources): void {
  const channels = () => channelsOf(projector.state("deliveries"));
  const pending = "Dispatches that were requested and have no final outcome.";
  lookUpEach(registry, ["reachlog_outbox_pending", pending, OF_LANE], function* () {
    for (const [channel, { lanes }] of channels())
      for (const lane of lanesOf(channel)) yield [{ channel, lane }, lanes[lane].pending];
  });
  const oldest = "Age of the oldest pending dispatch; 0: none is pending.";
  lookUpEach(registry, ["reachlog_outbox_oldest_seconds", oldest, OF_LANE], async function* () {
    for (const [channel, { lanes }] of channels()) {
      for (const lane of lanesOf(channel)) {
        const time = await readOldestPending(store, channel, lane, lanes[lane], { eventsMax: OLDEST_EVENTS_MAX });
        yield [{ channel, lane }, time === undefined ? 0 : Math.max(0, clock() - Date.parse(time)) / 1_000];
      }
    }
  });
  const lookUpChannels = (name: string, help: string, read: (state: ChannelState) => number): void =>
    lookUpEach(registry, [name, help, OF_CHANNEL], function* () {
      for (const [channel, state] of channels()) yield [{ channel }, read(state)];
    });
  const dead = "Dispatches that were given up, and neither retried nor discarded.";
  lookUpChannels("reachlog_dead_letters", dead, (state) => state.dead);
  const suspended = "1 while the network refuses the channel as a whole.";
  lookUpChannels("reachlog_channel_suspended", suspended, (state) => (state.suspended === null ? 0 : 1));
  const circuit = "1 for the current state of the circuit breaker; only for configured channels.";
  lookUpEach(registry, ["reachlog_channel_circuit", circuit, ["channel", "state"]], function* () {
    for (const channel of delivery.configured) {
      const now = delivery.circuit(channel);
      for (const state of CIRCUITS) yield [{ channel, state }, state === now ? 1 : 0];
    }
  });
}

const OUTCOMES: Readonly<Record<OutcomeType, string>> = {
  DispatchSucceeded: "succeeded",
  DispatchFailed: "failed",
  DispatchSkipped: "skipped",
  DispatchInDoubt: "in_doubt",
  DispatchAbandoned: "abandoned",
};

/** Buckets of the histogram of requests to networks, in seconds, up to the deadline of an attempt. */
const BUCKETS = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Creates the metrics of this process's requests to networks. `configured`: channels with credentials. */
export function createDispatchMetrics(registry: Registry, configured: readonly ChannelName[] = []): DispatchMetrics {
  const dispatches = createCounter(
    registry,
    "reachlog_dispatches_total",
    "Outcomes of dispatches that this process recorded; failed: it will be retried.",
    ["channel", "outcome"],
  );
  const seconds = createHistogram(
    registry,
    BUCKETS,
    "reachlog_dispatch_request_seconds",
    "One request to a channel's network, of one dispatch or of many.",
    ["channel"],
  );
  for (const channel of sortChannels([...CHANNELS, ...configured])) {
    for (const outcome of Object.values(OUTCOMES)) dispatches.inc({ channel, outcome }, 0);
    seconds.zero({ channel });
  }
  return {
    asked: (channel, ms) => seconds.observe({ channel }, ms / 1_000),
    recorded: (channel, type, count) => dispatches.inc({ channel, outcome: OUTCOMES[type] }, count),
  };
}
