import type { Recorded } from "../../events/event-types-and-codec.ts";
import { type ChannelName, CLICK_CHANNELS, lanesOf, sortChannels } from "../../events/channel-and-lane-names.ts";
import { positionsOf, type Sources } from "../../events/position-ranges.ts";
import { findChannel, isSettled } from "../../projections/deliveries.ts";
import { type EventLog, STREAMS, type StateContext } from "../log/event-log.ts";
import type { Channel } from "../networks/network.ts";
import { breakerIn, type Circuit, toCircuit } from "./pace-and-circuit-breaker.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

export type Settlement =
  | { readonly status: "delivered"; readonly latencyMs: number }
  /** Final outcome of a dispatch that was not delivered. `latencyMs` is present if the network answered. */
  | { readonly status: "skipped" | "in_doubt" | "failed"; readonly detail: string; readonly latencyMs?: number };

export type Delivery = ReturnType<typeof createDelivery>;

export function createDelivery({ eventLog, projector, clock }: StateContext, channels: readonly Channel[]) {
  const byChannel = new Map(channels.map((channel) => [channel.name, channel]));
  const waiters = new Map(channels.map(({ name }): [ChannelName, Waiters] => [name, new Map()]));

  projector.listen((event) => {
    if (!("channel" in event.data)) return;
    const ofChannel = waiters.get(event.data.channel ?? "webhook");
    if (ofChannel === undefined || ofChannel.size === 0) return;
    for (const { sources, settlement } of settlementsIn(event)) {
      for (const source of positionsOf(sources)) for (const resolve of ofChannel.get(source) ?? []) resolve(settlement);
    }
  });

  return {
    /** Channels for which this process has credentials. */
    configured: sortChannels(byChannel.keys()),
    /**
     * The configured channels among ads, chat and messaging, to each of which a click is dispatched. Webhooks carry the
     * events that they are subscribed to.
     */
    takeClicks: CLICK_CHANNELS.filter((channel) => byChannel.has(channel)),
    /** Returns the state of a channel's circuit breaker; undefined if the channel is not configured. */
    circuit(channel: ChannelName): Circuit | undefined {
      if (!byChannel.has(channel)) return undefined;
      const now = clock();
      return toCircuit(breakerIn(findChannel(projector.state("deliveries"), channel), now), now);
    },
    /**
     * Returns how long the channel's network recognises a repeated dispatch, in ms; 0 if it never does or the channel
     * is not configured.
     */
    recognisesMs: (channel: ChannelName): number => byChannel.get(channel)?.recognisesMs ?? 0,
    /**
     * Waits until the dispatch requested at `position` has ended. Undefined if it is pending after `timeoutMs`, or
     * while the deliveries are still being folded; it is sent later.
     */
    async settled(channel: ChannelName, position: number, timeoutMs: number): Promise<Settlement | undefined> {
      if (!projector.isFolded("deliveries")) return undefined;
      const live = Promise.withResolvers<Settlement | undefined>();
      const ofChannel: Waiters = waiters.get(channel) ?? new Map();
      const group = ofChannel.get(position) ?? new Set();
      ofChannel.set(position, group.add(live.resolve));
      const timer = setTimeout(() => live.resolve(undefined), timeoutMs);
      try {
        const { lanes } = findChannel(projector.state("deliveries"), channel);
        // The dispatch ended before the caller began to wait, as after a repeated request, so the log has the outcome.
        if (lanesOf(channel).some((lane) => isSettled(lanes[lane], position))) {
          const found = await find(eventLog, channel, position);
          if (found !== undefined) return found;
        }
        return await live.promise;
      } finally {
        clearTimeout(timer);
        group.delete(live.resolve);
        if (group.size === 0) ofChannel.delete(position);
      }
    },
  };
}

/** Callbacks of waiting callers, by the position at which their dispatch was requested. */
type Waiters = Map<number, Set<(settlement: Settlement) => void>>;

async function find(eventLog: EventLog, channel: ChannelName, position: number): Promise<Settlement | undefined> {
  for await (const event of eventLog.store.read({ stream: STREAMS.delivery(channel), from: position })) {
    const found = settlementsIn(event).find(({ sources }) => positionsOf(sources).includes(position));
    if (found !== undefined) return found.settlement;
  }
  return undefined;
}

/** Returns the dispatches that this event ended; for most events none. */
function settlementsIn({ type, data }: Recorded): { readonly sources: Sources; readonly settlement: Settlement }[] {
  switch (type) {
    case "DispatchSucceeded":
      return data.requests.map(({ sources, latency_ms: latencyMs }) => {
        return { sources, settlement: { status: "delivered", latencyMs } };
      });
    case "DispatchSkipped":
      return data.requests.map(({ sources, reason }) => {
        return { sources, settlement: { status: "skipped", detail: reason } };
      });
    case "DispatchInDoubt":
    case "DispatchAbandoned":
      return data.requests.map(({ sources, detail, latency_ms: latencyMs }) => {
        const status = type === "DispatchInDoubt" ? "in_doubt" : "failed";
        return { sources, settlement: { status, detail, ...omitUndefined({ latencyMs }) } };
      });
    default:
      return [];
  }
}
