import type { EventStore } from "eventstore-lite";
import type { Event, EventType, Recorded } from "../../events/catalog.ts";
import type { Lane } from "../../events/channel.ts";
import type { Dispatch } from "../networks/network.ts";

/** The events that owe dispatches, by lane. */
export const OWING: Record<Lane, readonly EventType[]> = {
  clicks: ["LinkClicked"],
  direct: ["NotificationRequested", "MessageRequested", "ChannelTestRequested", "ChannelDispatchRetryRequested"],
};

/** The dispatch that an event owes; for a retry, that of the event whose dispatch is repeated. */
export async function dispatchOf(store: EventStore<Event>, event: Recorded): Promise<Dispatch> {
  const { id, time } = event;
  switch (event.type) {
    case "LinkClicked": {
      const { domain, short_code, original_url, ip, user_agent, bot } = event.data;
      const link = { domain, shortCode: short_code, originalUrl: original_url };
      return { kind: "click", id, time, event: event.data.event, ...link, ip, userAgent: user_agent, bot };
    }
    case "NotificationRequested":
      return { kind: "notification", id, time, ...event.data };
    case "MessageRequested":
      return { kind: "message", id, time, text: event.data.text };
    case "ChannelTestRequested":
      return { kind: "test", id, time };
    case "ChannelDispatchRetryRequested":
      return dispatchOf(store, await eventAt(store, event.data.source));
    default:
      throw new Error(`${event.type} owes no dispatch`);
  }
}

/** The id by which outcomes name what was owed: of a retry, that of the original event. */
export function subjectOf(event: Recorded): string {
  return event.type === "ChannelDispatchRetryRequested" ? event.data.event_id : event.id;
}

async function eventAt(store: EventStore<Event>, position: number): Promise<Recorded> {
  for await (const event of store.read({ from: position, to: position })) return event;
  throw new Error(`the log has no event at position ${position}`);
}
