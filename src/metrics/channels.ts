import type { Registry } from "prom-client";
import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { LANES } from "../../events/channel.ts";
import { channelsOf } from "../../projections/deliveries.ts";
import type { Circuit } from "../delivery/circuit-breaker.ts";
import type { Delivery } from "../delivery/delivery.ts";
import { readOldestPending } from "../delivery/tail.ts";
import type { Clock } from "../platform/clock.ts";
import type { Projector } from "../projector/projector.ts";
import { lookUpEach } from "./figures.ts";

/** Events read for the oldest of a lane: mostly it is the first one. */
const OLDEST_EVENTS_MAX = 10_000;

const CIRCUITS: readonly Circuit[] = ["closed", "open", "half_open"];

const OF_LANE = ["channel", "lane"] as const;
const OF_CHANNEL = ["channel"] as const;

export interface ChannelSources {
  readonly store: EventStore<Event>;
  readonly projector: Projector;
  readonly delivery: Pick<Delivery, "configured" | "circuit">;
  readonly clock: Clock;
}

/** How each channel is, by the log: the same on whatever instance of it is asked. */
export function observeChannels(registry: Registry, { store, projector, delivery, clock }: ChannelSources): void {
  const channels = () => channelsOf(projector.state("deliveries"));
  const pending = "Dispatches that were requested and have no final outcome.";
  lookUpEach(registry, { name: "reachlog_outbox_pending", help: pending, labelNames: OF_LANE }, (gauge) => {
    for (const [channel, { lanes }] of channels())
      for (const lane of LANES) gauge.set({ channel, lane }, lanes[lane].pending);
  });
  const oldest = "Age of the oldest pending dispatch; 0: none is pending.";
  lookUpEach(registry, { name: "reachlog_outbox_oldest_seconds", help: oldest, labelNames: OF_LANE }, async (gauge) => {
    for (const [channel, { lanes }] of channels()) {
      for (const lane of LANES) {
        const time = await readOldestPending(store, channel, lane, lanes[lane], { eventsMax: OLDEST_EVENTS_MAX });
        gauge.set({ channel, lane }, time === undefined ? 0 : Math.max(0, clock() - Date.parse(time)) / 1_000);
      }
    }
  });
  const dead = "Dispatches that were given up, and neither taken up again nor discarded.";
  lookUpEach(registry, { name: "reachlog_dead_letters", help: dead, labelNames: OF_CHANNEL }, (gauge) => {
    for (const [channel, state] of channels()) gauge.set({ channel }, state.dead);
  });
  const suspended = "1 while the network refuses the channel as a whole.";
  lookUpEach(registry, { name: "reachlog_channel_suspended", help: suspended, labelNames: OF_CHANNEL }, (gauge) => {
    for (const [channel, state] of channels()) gauge.set({ channel }, state.suspended === null ? 0 : 1);
  });
  const circuit = {
    name: "reachlog_channel_circuit",
    help: "1 for the state of the circuit breaker; only of channels that are configured.",
    labelNames: ["channel", "state"],
  } as const;
  lookUpEach(registry, circuit, (gauge) => {
    for (const channel of delivery.configured) {
      const now = delivery.circuit(channel);
      for (const state of CIRCUITS) gauge.set({ channel, state }, state === now ? 1 : 0);
    }
  });
}
