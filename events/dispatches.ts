import { EVENT_TYPES, type DataOf, type EventType, type Folded } from "./catalog.ts";
import { isWebhook, type ChannelName, type Lane, type WebhookChannel } from "./channel.ts";
import { positionsOf, sourcesOf } from "./sources.ts";

/** The events that request dispatches by themselves, by the lane in which these are made. */
export const REQUESTING: Readonly<Record<Exclude<Lane, "events">, readonly EventType[]>> = {
  clicks: ["LinkClicked"],
  direct: ["NotificationRequested", "MessageRequested", "ChannelTestRequested", "DispatchRetryRequested"],
};

/** The channels to which this event requests a dispatch by itself; none for most. {@link isSubscribed} has the rest. */
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

/** Whether an event requests a dispatch to that channel by itself. Asked for every event by every dispatcher. */
export function requestsDispatch(event: Folded, channel: ChannelName): boolean {
  return event.type === "LinkClicked"
    ? (event.data.channels as readonly ChannelName[]).includes(channel)
    : requestedChannels(event).includes(channel);
}

/** What a webhook carries from position `from` on, up to its next subscription: events of these types. */
export interface Subscription {
  readonly from: number;
  readonly types: readonly string[];
  /** As {@link WebhookSubscribed} has it; absent: nothing is carried. */
  readonly receiver?: string;
  readonly filter?: string;
}

/** The events after which a webhook carries something else. */
export const SUBSCRIBING: readonly EventType[] = ["WebhookSubscribed", "WebhookUnsubscribed"];

/** What is of use to the service alone. */
const BOOKKEEPING: readonly EventType[] = ["RequestAnswered", "ProjectionRebuilt"];

/** The events that may change what is pending, or are themselves dispatched. */
export const DISPATCHED_TYPES: readonly EventType[] = EVENT_TYPES.filter((type) => !BOOKKEEPING.includes(type));

/** Tests go to webhooks as such; claims come before each request, and only the next dispatcher reads them. */
const UNCARRIED: readonly EventType[] = [...SUBSCRIBING, "ChannelTestRequested", "DispatchClaimed"];

/** What a webhook may be subscribed to. */
export const SUBSCRIBABLE: readonly EventType[] = DISPATCHED_TYPES.filter((type) => !UNCARRIED.includes(type));

/** What one webhook carries after an event of {@link SUBSCRIBING}; undefined for all others: it goes on. */
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
 * Whether the webhook with these subscriptions, in the order of the log, carries an event. None carries what is about a
 * webhook: each delivery of that would cause another event.
 */
export function isSubscribed(subscriptions: readonly Subscription[], event: Folded): boolean {
  if (subscriptions.length === 0) return false;
  const { type, data, position } = event;
  if ("channel" in data && isWebhook(data.channel ?? "webhook")) return false;
  return subscriptions.findLast(({ from }) => from <= position)?.types.includes(type) ?? false;
}

/** The channels to which the event requests dispatches: by itself, or by the subscriptions of webhooks. */
export function findRequestedChannels(
  webhooks: ReadonlyMap<WebhookChannel, readonly Subscription[]>,
  event: Folded,
): readonly ChannelName[] {
  const carriers = [...webhooks].filter(([, subscriptions]) => isSubscribed(subscriptions, event));
  return [...requestedChannels(event), ...carriers.map(([name]) => name)];
}

/** The lane in which what an event requests by itself is dispatched. */
export function laneOf(event: Folded): Exclude<Lane, "events"> {
  return event.type === "LinkClicked" ? "clicks" : "direct";
}

/** The events that say how dispatches ended. */
export type OutcomeType =
  "DispatchSucceeded" | "DispatchFailed" | "DispatchSkipped" | "DispatchInDoubt" | "DispatchAbandoned";

/** One request of an outcome event, and what it carried. */
export type RequestOf<T extends OutcomeType> = DataOf<T>["requests"][number];

export function isOutcome<E extends Pick<Folded, "data">>(event: E): event is E & Folded<OutcomeType> {
  return "requests" in event.data;
}

/** Whether it settles its dispatches: all but a failure, which is followed by another attempt. */
export function isFinal(type: OutcomeType): boolean {
  return type !== "DispatchFailed";
}

/** The outcome as if its requests had carried none but these dispatches; undefined where they carried none of them. */
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
