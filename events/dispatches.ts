import { EVENT_TYPES, type DataOf, type EventType, type Folded } from "./catalog.ts";
import type { ChannelName, Lane } from "./channel.ts";
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

/** What the webhook carries from position `from` on, up to the next subscription: events of these types. */
export interface Subscription {
  readonly from: number;
  readonly types: readonly string[];
  /** As {@link WebhookSubscribed} has it; absent: nothing is carried. */
  readonly receiver?: string;
}

/**
 * What is about dispatches and subscriptions. No webhook carries it: each delivery of it would be another dispatch, and
 * tests go to the webhook as such.
 */
export const ABOUT_DISPATCHES: readonly EventType[] = [
  "WebhookSubscribed",
  "WebhookUnsubscribed",
  "ChannelTestRequested",
  "DispatchRetryRequested",
  "DispatchClaimed",
  "DispatchSucceeded",
  "DispatchFailed",
  "DispatchSkipped",
  "DispatchInDoubt",
  "DispatchAbandoned",
  "DispatchDiscarded",
];

/** What is of use to the service alone. */
const BOOKKEEPING: readonly EventType[] = ["RequestAnswered", "ProjectionRebuilt"];

/** What the webhook may be subscribed to. */
export const SUBSCRIBABLE: readonly EventType[] = EVENT_TYPES.filter(
  (type) => !ABOUT_DISPATCHES.includes(type) && !BOOKKEEPING.includes(type),
);

/** The events after which the webhook carries something else. */
export const SUBSCRIBING: readonly EventType[] = ["WebhookSubscribed", "WebhookUnsubscribed"];

/** What the webhook carries after this event; undefined for most: it goes on. */
export function subscriptionBy({ type, data, position }: Folded): Subscription | undefined {
  if (type === "WebhookSubscribed") return { from: position + 1, ...data };
  return type === "WebhookUnsubscribed" ? { from: position + 1, types: [] } : undefined;
}

/** Whether the webhook carries an event; never one about its own channel. `subscriptions`: in the order of the log. */
export function isSubscribed(subscriptions: readonly Subscription[], event: Folded): boolean {
  if (subscriptions.length === 0) return false;
  const { type, data, position } = event;
  if ("channel" in data && data.channel === "webhook") return false;
  return subscriptions.findLast(({ from }) => from <= position)?.types.includes(type) ?? false;
}

/** The lane in which what an event requests by itself is dispatched. */
export function laneOf(event: Folded): Exclude<Lane, "events"> {
  return event.type === "LinkClicked" ? "clicks" : "direct";
}

/** The events that say what became of dispatches. */
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
