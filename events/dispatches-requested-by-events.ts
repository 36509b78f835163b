import { EVENT_TYPES, type DataOf, type EventLike, type EventType, type Folded } from "./event-types-and-codec.ts";
import { isWebhook, type ChannelName, type Lane, type WebhookChannel } from "./channel-and-lane-names.ts";
import { positionsOf, sourcesOf } from "./position-ranges.ts";

/**
 * Event types that request dispatches without a webhook's subscription, by the lane (queue of a channel) that the
 * dispatches join.
 */
export const REQUESTING: Readonly<Record<Exclude<Lane, "events">, readonly EventType[]>> = {
  clicks: ["LinkClicked", "ConversionRecorded"],
  direct: ["NotificationRequested", "MessageRequested", "ChannelTestRequested", "DispatchRetryRequested"],
};

/**
 * Returns the channels to which an event requests a dispatch; for most events none. Subscriptions of webhooks do not
 * count, see {@link isSubscribed}.
 */
export function requestedChannels(event: Folded): readonly ChannelName[] {
  switch (event.type) {
    case "LinkClicked":
    case "ConversionRecorded":
    case "ChannelTestRequested":
      return event.data.channels;
    case "NotificationRequested":
      return ["chat"];
    case "MessageRequested":
      return ["messaging"];
    case "DispatchRetryRequested":
      return [event.data.channel];
    default:
      return [];
  }
}

/**
 * True if the event requests a dispatch to the channel; subscriptions of webhooks do not count. Every dispatcher calls
 * this for every event.
 */
export function requestsDispatch(event: Folded, channel: ChannelName): boolean {
  return event.type === "LinkClicked"
    ? (event.data.channels as readonly ChannelName[]).includes(channel)
    : requestedChannels(event).includes(channel);
}

/**
 * Subscription of a webhook: from position `from` up to the webhook's next subscription, it carries events of these
 * types.
 */
export interface Subscription {
  readonly from: number;
  readonly types: readonly string[];
  /**
   * Keyed hash of the address to which the webhook sends events; absent if the webhook is unsubscribed and sends none.
   */
  readonly receiver?: string;
  readonly filter?: string;
}

/** Event types that change what a webhook carries. */
export const SUBSCRIBING: readonly EventType[] = ["WebhookSubscribed", "WebhookUnsubscribed"];

/** Event types that only the service itself uses. */
const BOOKKEEPING: readonly EventType[] = ["RequestAnswered", "ProjectionRebuilt"];

/** Event types that may change which dispatches are pending, or are themselves dispatched. */
export const DISPATCHED_TYPES: readonly EventType[] = EVENT_TYPES.filter((type) => !BOOKKEEPING.includes(type));

/**
 * Event types that webhooks do not carry as events: changes of webhook subscriptions; requests for a test, which a test
 * message carries; and `DispatchClaimed`, which only the dispatcher that sends to the channel next needs.
 */
const UNCARRIED: readonly EventType[] = [...SUBSCRIBING, "ChannelTestRequested", "DispatchClaimed"];

/** Event types that a webhook can subscribe to. */
export const SUBSCRIBABLE: readonly EventType[] = DISPATCHED_TYPES.filter((type) => !UNCARRIED.includes(type));

/** Returns a webhook's new subscription if the event is one of {@link SUBSCRIBING}; undefined for all other events. */
export function subscriptionBy({
  type,
  data,
  position,
}: Folded): { readonly channel: WebhookChannel; readonly subscription: Subscription } | undefined {
  if (type !== "WebhookSubscribed" && type !== "WebhookUnsubscribed") return undefined;
  const { channel = "webhook", ...carried } = data;
  return { channel, subscription: { from: position + 1, types: [], ...carried } };
}

/**
 * True if a webhook carries the event. `subscriptions`: those of this webhook, in the order of the log. No webhook
 * carries events about webhooks, because each delivery would cause another such event.
 */
export function isSubscribed(subscriptions: readonly Subscription[], event: Folded): boolean {
  if (subscriptions.length === 0) return false;
  const { type, data, position } = event;
  if ("channel" in data && isWebhook(data.channel ?? "webhook")) return false;
  return subscriptions.findLast(({ from }) => from <= position)?.types.includes(type) ?? false;
}

/**
 * Returns the channels to which an event requests dispatches, including the webhooks that have subscribed to its type.
 */
export function findRequestedChannels(
  webhooks: ReadonlyMap<WebhookChannel, readonly Subscription[]>,
  event: Folded,
): readonly ChannelName[] {
  const carriers = [...webhooks].filter(([, subscriptions]) => isSubscribed(subscriptions, event));
  return [...requestedChannels(event), ...carriers.map(([name]) => name)];
}

/**
 * Returns the lane (queue of a channel) of the dispatches that an event requests, apart from those of subscribed
 * webhooks.
 */
export function laneOf(event: Folded): Exclude<Lane, "events"> {
  return REQUESTING.clicks.includes(event.type) ? "clicks" : "direct";
}

/**
 * Types of the events that record an outcome of dispatches. After `DispatchFailed` another attempt follows; all others
 * settle the dispatches.
 */
export type OutcomeType =
  "DispatchSucceeded" | "DispatchFailed" | "DispatchSkipped" | "DispatchInDoubt" | "DispatchAbandoned";

/** Request in an outcome event, with the dispatches that it carried. */
export type RequestOf<T extends OutcomeType> = DataOf<T>["requests"][number];

export function isOutcome<E extends EventLike>(event: E): event is E & Folded<OutcomeType> {
  return "requests" in event.data;
}

/** True if events of this type settle their dispatches. A failure does not: another attempt follows. */
export function isFinal(type: OutcomeType): boolean {
  return type !== "DispatchFailed";
}

/** Positions at which dispatches were requested, as a set or as the keys of a map. */
export interface RequestPositions {
  has(position: number): boolean;
}

/**
 * Returns a copy of the outcome event whose requests carry only the given dispatches; undefined if they carried none of
 * them.
 */
export function narrowedTo<E extends { readonly data: Folded<OutcomeType>["data"] }>(
  event: E,
  dispatches: RequestPositions,
): E | undefined {
  const requests = event.data.requests.flatMap((request) => {
    const own = positionsOf(request.sources).filter((position) => dispatches.has(position));
    return own.length === 0 ? [] : [{ ...request, sources: sourcesOf(own) }];
  });
  return requests.length === 0 ? undefined : { ...event, data: { ...event.data, requests } };
}
