import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../events/catalog.ts";
import type { ChannelName } from "../../events/channel.ts";
import { eventAt } from "../log/events-at.ts";
import type { Click, DigestLink, Dispatch } from "../networks/network.ts";

/** What networks receive of a click: made once for all channels. */
const clicks = new WeakMap<Recorded, Click>();

/**
 * What an event requests to be dispatched to the channel; for a retry, that of the event whose dispatch is repeated.
 * Undefined: its personal data was erased, so there is nothing to send. The webhook carries events as they are, also tests
 * and what is left of one that was erased.
 */
export function toDispatch(
  store: EventStore<Event>,
  event: Recorded,
  channel: ChannelName,
): Dispatch | undefined | Promise<Dispatch | undefined> {
  if (event.type === "DispatchRetryRequested" && event.data.channel === channel) {
    return eventAt(store, event.data.source).then((source) => toDispatch(store, source, channel));
  }
  if (channel === "webhook") return { kind: "event", id: event.id, time: event.time, event };
  if (event.meta.erased === true) return undefined;
  const { id, time } = event;
  switch (event.type) {
    case "LinkClicked":
      return clicks.get(event) ?? toClick(event);
    case "NotificationRequested":
      return { kind: "notification", id, time, ...event.data };
    case "MessageRequested":
      return { kind: "message", id, time, text: event.data.text };
    case "ChannelTestRequested":
      return { kind: "test", id, time };
    default:
      throw new Error(`${event.type} requests no dispatch`);
  }
}

function toClick(event: Recorded<"LinkClicked">): Click {
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

/** Many clicks as one message: grouped by link, the most clicked first (pure). `clicks` in the order of the log, not empty. */
export function toDigest(id: string, clicks: readonly Click[]): Dispatch {
  const links = new Map<string, DigestLink>();
  for (const { domain, shortCode, bot, time } of clicks) {
    const key = `${domain}/${shortCode}`;
    const link = links.get(key);
    const counted = { clicks: (link?.clicks ?? 0) + 1, bots: (link?.bots ?? 0) + (bot ? 1 : 0) };
    links.set(key, { domain, shortCode, ...counted, first: link?.first ?? time, last: time });
  }
  return {
    kind: "digest",
    id,
    time: clicks.at(-1)?.time ?? "",
    clicks: clicks.length,
    bots: clicks.filter(({ bot }) => bot).length,
    links: [...links.values()].sort((one, other) => other.clicks - one.clicks),
  };
}
