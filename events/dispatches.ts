import { EVENT_TYPES, type DataOf, type EventType, type Folded } from "./catalog.ts";
import { isWebhook, type ChannelName, type Lane, type WebhookChannel } from "./channel.ts";
import { positionsOf, sourcesOf } from "./sources.ts";

/** The events that request dispatches by themselves, by the lane of these dispatches. */
export const REQUESTING: Readonly<Record<Exclude<Lane, "events">, readonly EventType[]>> = {
  clicks: ["LinkClicked"],
  direct: ["NotificationRequested", "MessageRequested", "ChannelTestRequested", "DispatchRetryRequested"],
};

/**
 * The channels to which the event requests a dispatch by itself; usually none. For webhooks see {@link isSubscribed}.
 */
export function requestedChannels(event: Folded): readonly ChannelName[] {
  switch (event.type) {
    case "LinkClicked":
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

/** True if the event requests a dispatch to the channel by itself. Every dispatcher calls this for every event. */
export function requestsDispatch(event: Folded, channel: ChannelName): boolean {
  return event.type === "LinkClicked"
    ? (event.data.channels as readonly ChannelName[]).includes(channel)
    : requestedChannels(event).includes(channel);
}

/** A subscription of a webhook: from position `from` up to its next subscription it carries events of these types. */
export interface Subscription {
  readonly from: number;
  readonly types: readonly string[];
  /** As in {@link WebhookSubscribed}; absent if the webhook carries nothing. */
  readonly receiver?: string;
  readonly filter?: string;
}

/** The events that change what a webhook carries. */
export const SUBSCRIBING: readonly EventType[] = ["WebhookSubscribed", "WebhookUnsubscribed"];

/** Events that only the service itself uses. */
const BOOKKEEPING: readonly EventType[] = ["RequestAnswered", "ProjectionRebuilt"];

/** The events that may change what is pending, or are themselves dispatched. */
export const DISPATCHED_TYPES: readonly EventType[] = EVENT_TYPES.filter((type) => !BOOKKEEPING.includes(type));

/**
 * Events that no webhook carries. A test goes to a webhook as such, and only the next dispatcher reads claims, which
 * precede each request.
 */
const UNCARRIED: readonly EventType[] = [...SUBSCRIBING, "ChannelTestRequested", "DispatchClaimed"];

/** The event types that a webhook can subscribe to. */
export const SUBSCRIBABLE: readonly EventType[] = DISPATCHED_TYPES.filter((type) => !UNCARRIED.includes(type));

/** Returns a webhook's new subscription after an event of {@link SUBSCRIBING}; undefined for all other events. */
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
 * True if a webhook with these subscriptions, in the order of the log, carries the event. None carries events about a
 * webhook: each delivery of one would cause another event.
 */
export function isSubscribed(subscriptions: readonly Subscription[], event: Folded): boolean {
  if (subscriptions.length === 0) return false;
  const { type, data, position } = event;
  if ("channel" in data && isWebhook(data.channel ?? "webhook")) return false;
  return subscriptions.findLast(({ from }) => from <= position)?.types.includes(type) ?? false;
}

/** The channels to which the event requests dispatches: by itself, or by subscriptions of webhooks. */
export function findRequestedChannels(
  webhooks: ReadonlyMap<WebhookChannel, readonly Subscription[]>,
  event: Folded,
): readonly ChannelName[] {
  const carriers = [...webhooks].filter(([, subscriptions]) => isSubscribed(subscriptions, event));
  return [...requestedChannels(event), ...carriers.map(([name]) => name)];
}

/** The lane of the dispatches that an event requests by itself. */
export function laneOf(event: Folded): Exclude<Lane, "events"> {
  return event.type === "LinkClicked" ? "clicks" : "direct";
}

/** The events that record how dispatches ended. */
export type OutcomeType =
  "DispatchSucceeded" | "DispatchFailed" | "DispatchSkipped" | "DispatchInDoubt" | "DispatchAbandoned";

/** One request of an outcome event, and the dispatches that it carried. */
export type RequestOf<T extends OutcomeType> = DataOf<T>["requests"][number];

export function isOutcome<E extends Pick<Folded, "data">>(event: E): event is E & Folded<OutcomeType> {
  return "requests" in event.data;
}

/** True if the outcome settles its dispatches. A failure does not: another attempt follows. */
export function isFinal(type: OutcomeType): boolean {
  return type !== "DispatchFailed";
}

/** The outcome as if its requests had carried only these dispatches; undefined if they carried none of them. */
export function narrowedTo<E extends { readonly data: Folded<OutcomeType>["data"] }>(
  event: E,
  dispatches: Pick<ReadonlySet<number>, "has">,
): E | undefined {
  const requests = event.data.requests.flatMap((request) => {
    const own = positionsOf(request.sources).filter((position) => dispatches.has(position));
    return own.length === 0 ? [] : [{ ...request, sources: sourcesOf(own) }];
  });
  return requests.length === 0 ? undefined : { ...event, data: { ...event.data, requests } };
}
