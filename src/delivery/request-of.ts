import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../events/catalog.ts";
import { eventAt } from "../log/events-at.ts";
import type { Click, Dispatch } from "../networks/network.ts";

/** What clicks are to the networks: made once for all channels. */
const clicks = new WeakMap<Recorded, Click>();

/**
 * The dispatch that an event requests; for a retry, that of the event whose dispatch is repeated. Undefined: its
 * personal data was erased, so there is nothing to send.
 */
export function dispatchOf(
  store: EventStore<Event>,
  event: Recorded,
): Dispatch | undefined | Promise<Dispatch | undefined> {
  if (event.meta.erased === true) return undefined;
  const { id, time } = event;
  switch (event.type) {
    case "LinkClicked":
      return clicks.get(event) ?? clickOf(event);
    case "NotificationRequested":
      return { kind: "notification", id, time, ...event.data };
    case "MessageRequested":
      return { kind: "message", id, time, text: event.data.text };
    case "ChannelTestRequested":
      return { kind: "test", id, time };
    case "DispatchRetryRequested":
      return eventAt(store, event.data.source).then((source) => dispatchOf(store, source));
    default:
      throw new Error(`${event.type} requests no dispatch`);
  }
}

function clickOf(event: Recorded<"LinkClicked">): Click {
  const { id, time, data } = event;
  const { domain, short_code: shortCode, original_url: originalUrl, ip, user_agent: userAgent, bot } = data;
  const { normalized_url: normalizedUrl = originalUrl } = data;
  const click: Click = {
    kind: "click",
    id,
    time,
    event: data.event,
    domain,
    shortCode,
    originalUrl,
    normalizedUrl,
    ip,
    userAgent,
    bot,
  };
  clicks.set(event, click);
  return click;
}
