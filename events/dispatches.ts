import type { DataOf, EventType, Folded } from "./catalog.ts";
import type { ChannelName, Lane } from "./channel.ts";
import { positionsOf, sourcesOf } from "./sources.ts";

/** The events that request dispatches, by the lane in which these are made. */
export const REQUESTING: Readonly<Record<Lane, readonly EventType[]>> = {
  clicks: ["LinkClicked"],
  direct: ["NotificationRequested", "MessageRequested", "ChannelTestRequested", "DispatchRetryRequested"],
};

/** The channels to which this event requests a dispatch; none for most. */
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

/** Whether an event requests a dispatch to that channel. Asked for every event by every dispatcher. */
export function requestsDispatch(event: Folded, channel: ChannelName): boolean {
  return event.type === "LinkClicked"
    ? event.data.channels.includes(channel)
    : requestedChannels(event).includes(channel);
}

/** The lane in which what an event requests is dispatched. */
export function laneOf(event: Folded): Lane {
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
