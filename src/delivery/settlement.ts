import type { DataOf, Recorded } from "../../events/catalog.ts";
import { type ChannelName, CLICK_CHANNELS, lanesOf, sortChannels, type WebhookChannel } from "../../events/channel.ts";
import type { Subscription } from "../../events/dispatches.ts";
import { positionsOf, type Sources } from "../../events/sources.ts";
import { findChannel, isSettled, webhooksIn } from "../../projections/deliveries.ts";
import { type EventLog, type NewEvent, SERVICE_METADATA, STREAMS } from "../log/event-log.ts";
import { handle, type HandleDeps } from "../log/handle.ts";
import type { Channel } from "../networks/network.ts";
import type { Secret } from "../platform/secret.ts";
import { breakerIn, type Circuit, toCircuit } from "./rate-limiter.ts";
import type { DispatchDeps } from "./ask-network.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

export type Settlement =
  | { readonly status: "delivered"; readonly latencyMs: number }
  | { readonly status: "skipped"; readonly detail: string }
  /** `latencyMs` where the network answered. */
  | { readonly status: "in_doubt" | "failed"; readonly detail: string; readonly latencyMs?: number };

export type Delivery = ReturnType<typeof createDelivery>;

export function createDelivery(
  { eventLog, projector, clock }: Pick<DispatchDeps, "eventLog" | "projector" | "clock">,
  channels: readonly Channel[],
) {
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
    /** The channels that have credentials. */
    configured: sortChannels(byChannel.keys()),
    /** Those of them to which clicks are dispatched, by what a click says; a webhook carries what it is subscribed to. */
    takeClicks: CLICK_CHANNELS.filter((channel) => byChannel.has(channel)),
    /** Undefined for a channel that is not configured. */
    circuit(channel: ChannelName): Circuit | undefined {
      if (!byChannel.has(channel)) return undefined;
      const now = clock();
      return toCircuit(breakerIn(findChannel(projector.state("deliveries"), channel), now), now);
    },
    /** For how long its network takes a repeat for what it is, in ms; 0: it never does, or the channel is not configured. */
    recognisesMs: (channel: ChannelName): number => byChannel.get(channel)?.recognisesMs ?? 0,
    /**
     * Waits for the end of the dispatch requested at `position` to a channel that is configured; undefined when it is still
     * pending after `timeoutMs`, or while the deliveries are folded: it is recorded, and dispatched after that.
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
        // Settled before the caller began to wait, as after a repeated request: the log knows how.
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

/** By the position at which the dispatch was requested. */
type Waiters = Map<number, Set<(settlement: Settlement) => void>>;

async function find(eventLog: EventLog, channel: ChannelName, position: number): Promise<Settlement | undefined> {
  for await (const event of eventLog.store.read({ stream: STREAMS.delivery(channel), from: position })) {
    for (const { sources, settlement } of settlementsIn(event)) {
      for (const source of positionsOf(sources)) if (source === position) return settlement;
    }
  }
  return undefined;
}

/** How dispatches ended by this event; of most events none. */
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

interface WantedWebhook {
  readonly name: WebhookChannel;
  readonly url: Secret;
  readonly types: readonly string[];
  readonly filter: string | undefined;
}

interface SubscriptionDeps extends HandleDeps {
  /** {@link createCredentialHash}: the log shows whether the receiver is another one, and not where it is. */
  readonly hashCredential: (url: Secret) => string;
}

/**
 * Makes the log say what each webhook carries from now on, where that is another thing than before: of several instances
 * with different configurations the one that started last says so. Throws what {@link handle} throws.
 */
export async function updateSubscriptions(deps: SubscriptionDeps, wanted: readonly WantedWebhook[]): Promise<void> {
  const states = () => deps.projector.state("deliveries");
  for (const name of new Set([...wanted.map((webhook) => webhook.name), ...webhooksIn(states())])) {
    const webhook = wanted.find((one) => one.name === name);
    const data = webhook && {
      ...named(name),
      types: [...webhook.types],
      receiver: deps.hashCredential(webhook.url),
      ...omitUndefined({ filter: webhook.filter }),
    };
    const decide = () => {
      const current = findChannel(states(), name).lanes.events.subscriptions.at(-1);
      return { events: decideSubscription(name, current, data) };
    };
    // Where nothing changes the log is not even asked.
    if (decide().events.length === 0) continue;
    // A stream of its own: that of the channel moves on with each delivery that another instance makes.
    await handle(deps, STREAMS.webhook(name), decide, { metadata: SERVICE_METADATA });
  }
}

/** What is to be appended for the log to say what is wanted; `undefined`: nothing is carried (pure). */
export function decideSubscription(
  name: WebhookChannel,
  current: Subscription | undefined,
  wanted: DataOf<"WebhookSubscribed"> | undefined,
): readonly NewEvent[] {
  const types = current?.types ?? [];
  if (wanted === undefined) return types.length === 0 ? [] : [{ type: "WebhookUnsubscribed", data: named(name) }];
  const isSame =
    current?.receiver === wanted.receiver && current.filter === wanted.filter && types.join() === wanted.types.join();
  return isSame ? [] : [{ type: "WebhookSubscribed", data: wanted }];
}

/** As events name a webhook. */
function named(name: WebhookChannel): { readonly channel?: WebhookChannel } {
  return name === "webhook" ? {} : { channel: name };
}
