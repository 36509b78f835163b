import type { DataOf } from "../../../events/catalog.ts";
import type { ChannelName } from "../../../events/channel.ts";
import type { DispatchMode } from "../../../events/delivery.ts";
import type { Sources } from "../../../events/sources.ts";
import { because, plain, quoted } from "./phrases.ts";

/** Sentences for clicks, for what is asked for, and for what became of it on the channels. */
export const DELIVERY_WORDS = {
  LinkClicked: ({ event, domain, short_code, original_url, bot, channels }: DataOf<"LinkClicked">) =>
    `a ${bot ? "bot" : "person"} clicked ${domain}/${short_code} (${quoted(event)}), which leads to ` +
    `${quoted(original_url)}; ${dispatchedTo(channels)}`,
  NotificationRequested: ({ service, level, message }: DataOf<"NotificationRequested">) =>
    `a notification of level ${level} was requested for ${quoted(service)}: ${quoted(message)}; ${dispatchedTo(["chat"])}`,
  MessageRequested: ({ text }: DataOf<"MessageRequested">) =>
    `a message was requested: ${quoted(text)}; ${dispatchedTo(["messaging"])}`,
  ChannelTestRequested: ({ channels }: DataOf<"ChannelTestRequested">) =>
    `a test of the channels was requested; ${dispatchedTo(channels)}`,
  DispatchRetryRequested: (data: DataOf<"DispatchRetryRequested">) => {
    const { event_id, source, channel, doubtful_since, may_double } = data;
    const double = may_double === true ? ", though it may arrive twice" : "";
    return `the dead letter of position ${source} (event ${event_id}) was taken up again${double}${doubt(doubtful_since)}; ${dispatchedTo([channel])}`;
  },
  DispatchSucceeded: ({ channel, requests }: DataOf<"DispatchSucceeded">) =>
    eachOf(requests, (request) => {
      const as = request.network_id === undefined ? "" : ` as ${quoted(request.network_id)}`;
      return `${channel} took ${carriedBy(request)}${as}, ${attempt(request)}`;
    }),
  DispatchFailed: ({ channel, requests }: DataOf<"DispatchFailed">) =>
    eachOf(requests, (request) => {
      const not = request.may_have_arrived === true ? "may not have taken" : "did not take";
      return `${channel} ${not} ${carriedBy(request)}, ${attempt(request)}${because(request.detail)}; next attempt at ${request.retry_at}`;
    }),
  DispatchSkipped: ({ channel, requests }: DataOf<"DispatchSkipped">) =>
    eachOf(requests, (request) => `${carriedBy(request)} was not sent to ${channel}, ${plain(request.reason)}`),
  DispatchInDoubt: ({ channel, requests }: DataOf<"DispatchInDoubt">) =>
    eachOf(requests, (request) => {
      const what = `it is in doubt whether ${channel} took ${carriedBy(request)}, ${attempt(request)}`;
      return `${what}${because(request.detail)}; it is not sent again by itself`;
    }),
  DispatchAbandoned: ({ channel, requests }: DataOf<"DispatchAbandoned">) =>
    eachOf(requests, (request) => {
      const why = request.refused ? "refused for good" : "out of attempts";
      const since = doubt(request.doubtful_since);
      return `${carriedBy(request)} for ${channel} became a dead letter, ${why} ${attempt(request)}${since}${because(request.detail)}`;
    }),
  DispatchDiscarded: ({ event_id, source, channel, why }: DataOf<"DispatchDiscarded">) =>
    `the dead letter of position ${source} (event ${event_id}) for ${channel} was discarded by hand: ${quoted(why)}`,
  ChannelSuspended: ({ channel, network, status, detail }: DataOf<"ChannelSuspended">) =>
    `the channel ${channel} was suspended: ${network} refuses it as a whole${answer({ status })}${because(detail)}`,
  ChannelResumed: ({ channel, why }: DataOf<"ChannelResumed">) => `the channel ${channel} was resumed, ${RESUMED[why]}`,
};

const RESUMED = {
  by_hand: "by hand",
  credential_changed: "since its credential is another one now",
  delivered: "since the network took a test",
} as const;

function dispatchedTo(channels: readonly ChannelName[]): string {
  return `to be dispatched to ${channels.length === 0 ? "no channel" : channels.join(", ")}`;
}

function eachOf<R>(requests: readonly R[], say: (request: R) => string): string {
  return requests.map(say).join("; ");
}

/** What a request carried, by the positions at which that was requested. */
function carriedBy({ sources }: { readonly sources: Sources }): string {
  const ranges = sources.map((range) => (typeof range === "number" ? String(range) : range.join(" to ")));
  const isOne = sources.length === 1 && typeof sources[0] === "number";
  return `what ${isOne ? "position" : "positions"} ${ranges.join(", ")} requested`;
}

interface Attempt extends Answer {
  readonly attempt: number;
  readonly mode?: DispatchMode;
  readonly digest?: string;
}

/** Which attempt it was, what the network answered, and what it may have carried beside. */
function attempt({ attempt: number, mode, digest, ...rest }: Attempt): string {
  const together = mode === undefined || mode === "single" ? "" : `, in a ${mode}`;
  return `at attempt ${number}${answer(rest)}${together}${digest === undefined ? "" : ` (${digest})`}`;
}

interface Answer {
  readonly status?: number | undefined;
  readonly latency_ms?: number;
}

/** How soon the network answered and what; nothing where it did not. */
function answer({ status, latency_ms }: Answer): string {
  const after = latency_ms === undefined ? "" : ` in ${latency_ms} ms`;
  return status === undefined ? after : `${after} (status ${status})`;
}

/** Of what may be at the network already. */
function doubt(since: string | undefined): string {
  return since === undefined ? "" : `, though an attempt of ${since} may have arrived`;
}
