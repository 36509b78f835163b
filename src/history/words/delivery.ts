import type { DataOf } from "../../../events/catalog.ts";
import type { ChannelName } from "../../../events/channel.ts";
import type { DispatchMode } from "../../../events/delivery.ts";
import type { Sources } from "../../../events/sources.ts";
import { because, join, link, other, plain, position, quote, say, time, type Sentence } from "./phrases.ts";

/** Sentences for clicks, for what is asked for, and for what became of it on the channels. */
export const DELIVERY_WORDS = {
  LinkClicked: ({ event, domain, short_code, original_url, bot, channels }: DataOf<"LinkClicked">) => {
    const who = bot ? "bot" : "person";
    return say`a ${who} clicked ${link(domain, short_code)} (${quote(event)}), which leads to ${quote(original_url)}; ${dispatchedTo(channels)}`;
  },
  NotificationRequested: ({ service, level, message }: DataOf<"NotificationRequested">) =>
    say`a notification of level ${level} was requested for ${quote(service)}: ${quote(message)}; ${dispatchedTo(["chat"])}`,
  MessageRequested: ({ text }: DataOf<"MessageRequested">) =>
    say`a message was requested: ${quote(text)}; ${dispatchedTo(["messaging"])}`,
  ChannelTestRequested: ({ channels }: DataOf<"ChannelTestRequested">) =>
    say`a test of the channels was requested; ${dispatchedTo(channels)}`,
  DispatchRetryRequested: (data: DataOf<"DispatchRetryRequested">) => {
    const { channel, doubtful_since, may_double } = data;
    const double = may_double === true ? ", though it may arrive twice" : "";
    return say`${deadLetter(data)} was taken up again${double}${doubt(doubtful_since)}; ${dispatchedTo([channel])}`;
  },
  DispatchSucceeded: ({ channel, requests }: DataOf<"DispatchSucceeded">) =>
    eachOf(requests, (request) => {
      const as = request.network_id === undefined ? [] : say` as ${quote(request.network_id)}`;
      return say`${channel} took ${carriedBy(request)}${as}, ${attempt(request)}`;
    }),
  DispatchFailed: ({ channel, requests }: DataOf<"DispatchFailed">) =>
    eachOf(requests, (request) => {
      const not = request.may_have_arrived === true ? "may not have taken" : "did not take";
      return say`${channel} ${not} ${carriedBy(request)}, ${attempt(request)}${because(request.detail)}; next attempt at ${time(request.retry_at)}`;
    }),
  DispatchSkipped: ({ channel, requests }: DataOf<"DispatchSkipped">) =>
    eachOf(requests, (request) => say`${carriedBy(request)} was not sent to ${channel}, ${plain(request.reason)}`),
  DispatchInDoubt: ({ channel, requests }: DataOf<"DispatchInDoubt">) =>
    eachOf(requests, (request) => {
      const what = say`it is in doubt whether ${channel} took ${carriedBy(request)}, ${attempt(request)}`;
      return say`${what}${because(request.detail)}; it is not sent again by itself`;
    }),
  DispatchAbandoned: ({ channel, requests }: DataOf<"DispatchAbandoned">) =>
    eachOf(requests, (request) => {
      const why = request.refused ? "refused for good" : "out of attempts";
      const since = doubt(request.doubtful_since);
      return say`${carriedBy(request)} for ${channel} became a dead letter, ${why} ${attempt(request)}${since}${because(request.detail)}`;
    }),
  DispatchDiscarded: (data: DataOf<"DispatchDiscarded">) =>
    say`${deadLetter(data)} for ${data.channel} was discarded by hand: ${quote(data.why)}`,
  DispatchClaimed: ({ channel, sources }: DataOf<"DispatchClaimed">) =>
    say`a request to ${channel} was about to carry ${carriedBy({ sources })}`,
  CircuitOpened: ({ channel, failures, until }: DataOf<"CircuitOpened">) =>
    say`${failures} requests to ${channel} failed in a row, so nothing is sent there before ${time(until)}`,
  CircuitClosed: ({ channel }: DataOf<"CircuitClosed">) => say`a request arrived at ${channel} again`,
  ChannelSuspended: ({ channel, network, status, detail }: DataOf<"ChannelSuspended">) =>
    say`the channel ${channel} was suspended: ${other(network)} refuses it as a whole${answer({ status })}${because(detail)}`,
  ChannelResumed: ({ channel, why }: DataOf<"ChannelResumed">) =>
    say`the channel ${channel} was resumed, ${RESUMED[why]}`,
  WebhookSubscribed: ({ types }: DataOf<"WebhookSubscribed">) =>
    say`from here on the webhook carries ${join(
      types.map((type) => [other(type)]),
      ", ",
    )}`,
  WebhookUnsubscribed: () => say`from here on the webhook carries nothing`,
};

const RESUMED = {
  by_hand: "by hand",
  credential_changed: "since its credential is another one now",
  delivered: "since the network took a test",
} as const;

function dispatchedTo(channels: readonly ChannelName[]): string {
  return `to be dispatched to ${channels.length === 0 ? "no channel" : channels.join(", ")}`;
}

function deadLetter({ event_id, source }: { readonly event_id: string; readonly source: number }): Sentence {
  return say`the dead letter of position ${position(source)} (event ${other(event_id)})`;
}

function eachOf<R>(requests: readonly R[], sayOne: (request: R) => Sentence): Sentence {
  return join(requests.map(sayOne), "; ");
}

/** What a request carried, by the positions at which that was requested. */
function carriedBy({ sources }: { readonly sources: Sources }): Sentence {
  const ranges = sources.map((range) =>
    typeof range === "number"
      ? [position(range)]
      : join(
          range.map((end) => [position(end)]),
          " to ",
        ),
  );
  const isOne = sources.length === 1 && typeof sources[0] === "number";
  return say`what ${isOne ? "position" : "positions"} ${join(ranges, ", ")} requested`;
}

interface Attempt extends Answer {
  readonly attempt: number;
  readonly mode?: DispatchMode;
  readonly digest?: string;
}

/** Which attempt it was, what the network answered, and what it may have carried beside. */
function attempt({ attempt: number, mode, digest, ...rest }: Attempt): Sentence {
  const together = mode === undefined || mode === "single" ? "" : `, in a ${mode}`;
  const called = digest === undefined ? [] : say` (${other(digest)})`;
  return say`at attempt ${number}${answer(rest)}${together}${called}`;
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
function doubt(since: string | undefined): Sentence {
  return since === undefined ? [] : say`, though an attempt of ${time(since)} may have arrived`;
}
