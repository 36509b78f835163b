import type { DataOf, Recorded } from "../../events/catalog.ts";
import { CHANNELS, LANES, type ChannelName } from "../../events/channel.ts";
import { isSettled } from "../../projections/deliveries.ts";
import { STREAMS, type EventLog } from "../log/event-log.ts";
import type { Projector } from "../projector/projector.ts";
import type { Circuit } from "./circuit-breaker.ts";
import type { Dispatcher } from "./dispatcher.ts";

/** How a dispatch ended. */
export type Settlement =
  | { readonly status: "delivered"; readonly latencyMs: number }
  | { readonly status: "skipped"; readonly detail: string }
  /** `latencyMs` where the network answered. */
  | { readonly status: "in_doubt" | "failed"; readonly detail: string; readonly latencyMs?: number };

/** What the rest of the service sees of delivery. */
export interface Delivery {
  /** The channels that have credentials. */
  readonly configured: readonly ChannelName[];
  /** Undefined for a channel that is not configured. */
  circuit(channel: ChannelName): Circuit | undefined;
  /** Waits for the end of what is owed at `position`; undefined when it is still pending after `timeoutMs`. */
  settled(channel: ChannelName, position: number, timeoutMs: number): Promise<Settlement | undefined>;
}

export function createDelivery(eventLog: EventLog, projector: Projector, dispatchers: readonly Dispatcher[]): Delivery {
  const byChannel = new Map(dispatchers.map((dispatcher) => [dispatcher.channel, dispatcher]));
  const waiters = new Map<string, Set<(settlement: Settlement) => void>>();

  projector.listen((event) => {
    if (waiters.size === 0) return;
    const settled = settlementOf(event);
    if (settled === undefined) return;
    for (const resolve of waiters.get(keyOf(settled.channel, settled.owed)) ?? []) resolve(settled.settlement);
  });

  return {
    configured: CHANNELS.filter((channel) => byChannel.has(channel)),
    circuit: (channel) => byChannel.get(channel)?.circuit(),
    async settled(channel, position, timeoutMs) {
      const key = keyOf(channel, position);
      const live = Promise.withResolvers<Settlement | undefined>();
      const group = waiters.get(key) ?? new Set();
      waiters.set(key, group.add(live.resolve));
      const timer = setTimeout(() => live.resolve(undefined), timeoutMs);
      try {
        const lanes = projector.state("deliveries")[channel].lanes;
        // Settled before anybody waited, as after a repeated request: the log tells how.
        if (LANES.some((lane) => isSettled(lanes[lane], position))) {
          const told = await find(eventLog, channel, position);
          if (told !== undefined) return told;
        }
        return await live.promise;
      } finally {
        clearTimeout(timer);
        group.delete(live.resolve);
        if (group.size === 0) waiters.delete(key);
      }
    },
  };
}

function keyOf(channel: ChannelName, position: number): string {
  return `${channel} ${position}`;
}

async function find(eventLog: EventLog, channel: ChannelName, owed: number): Promise<Settlement | undefined> {
  for await (const event of eventLog.store.read({ stream: STREAMS.delivery(channel), from: owed })) {
    const settled = settlementOf(event);
    if (settled?.owed === owed) return settled.settlement;
  }
  return undefined;
}

type Told = Pick<DataOf<"DispatchSucceeded">, "channel" | "owed"> & { readonly settlement: Settlement };

/** What an event says of the end of a dispatch; undefined for all others. */
function settlementOf(event: Recorded): Told | undefined {
  switch (event.type) {
    case "DispatchSucceeded":
      return { ...event.data, settlement: { status: "delivered", latencyMs: event.data.latency_ms } };
    case "DispatchSkipped":
      return { ...event.data, settlement: { status: "skipped", detail: event.data.reason } };
    case "DispatchInDoubt":
      return { ...event.data, settlement: { status: "in_doubt", ...undelivered(event.data) } };
    case "DispatchAbandoned":
      return { ...event.data, settlement: { status: "failed", ...undelivered(event.data) } };
    default:
      return undefined;
  }
}

function undelivered({ detail, latency_ms }: { readonly detail: string; readonly latency_ms?: number }) {
  return { detail, ...(latency_ms === undefined ? {} : { latencyMs: latency_ms }) };
}
