import type { DataOf } from "../../../events/event-types-and-codec.ts";
import type { ChannelName, WebhookChannel } from "../../../events/channel-and-lane-names.ts";
import type { DispatchMode } from "../../../events/delivery.ts";
import type { Sources } from "../../../events/position-ranges.ts";
import { formatAmount } from "../../platform/money.ts";
import {
  because,
  join,
  link,
  other,
  plain,
  position,
  quote,
  run,
  say,
  moment,
  type Sentence,
  type EventWords,
} from "./sentence-parts.ts";

/** Sentences for clicks, for requests, and for the outcomes of dispatches. */
export const DELIVERY_WORDS = {
  LinkClicked: ({ event, domain, short_code, original_url, bot, probe, anonymous, channels }) => {
    const visitor = anonymous === true ? "person who asked not to be tracked" : "person";
    const who = probe === undefined ? (bot ? "bot" : visitor) : `${plain(probe)} request`;
    return say`a ${who} clicked ${link(domain, short_code)} (${quote(event)}) to ${quote(original_url)}; ${queuedFor(channels)}`;
  },
  LinkAdded: ({ domain, code, target, template, template_name, variant }) => {
    const named = template_name === undefined ? "a template" : say`the template ${quote(template_name)}`;
    const holder = template === undefined ? "by an operator" : say`for variant ${other(variant ?? "")} of ${named}`;
    return say`the link ${link(domain, code)} to ${quote(target)} was added ${holder}`;
  },
  PersonalLinkClicked: () => say`the recipient's own link was requested`,
  ConversionRecorded: (data) => {
    const { anonymous, click, channels } = data;
    const of = anonymous === true ? " of a visitor who is not tracked" : "";
    const by = click === undefined ? "attributed to no click" : say`attributed to the click at ${position(click)}`;
    return say`${sayConversion(data)} was recorded${of}, ${by}; ${queuedFor(channels)}`;
  },
  ConversionReversed: (data) => say`${sayConversion(data)} was reversed; no network is told`,
  NotificationRequested: ({ service, level, message, report }) => {
    const about = report?.run_id === undefined ? [] : say` about ${run(report.run_id)}`;
    return say`a notification of level ${level} was requested for ${quote(service)}${about}: ${quote(message)}; ${queuedFor(["chat"])}`;
  },
  MessageRequested: ({ text }) => say`a message was requested: ${quote(text)}; ${queuedFor(["messaging"])}`,
  ChannelTestRequested: ({ channels }) => say`a test of the channels was requested; ${queuedFor(channels)}`,
  DispatchRetryRequested: (data) => {
    const { channel, doubtful_since, may_double, in_doubt } = data;
    const double = may_double === true ? ", though it may arrive twice" : "";
    return say`an operator retried ${decided(in_doubt === true ? "dispatch in doubt" : "dead letter", data)}${double}${doubt(doubtful_since)}; ${queuedFor([channel])}`;
  },
  DispatchSucceeded: ({ channel, requests }) =>
    sayEach(requests, (request) => {
      const as = request.network_id === undefined ? [] : say` as ${quote(request.network_id)}`;
      return say`${channel}: ${carriedBy(request)} delivered${as} ${attempt(request)}`;
    }),
  DispatchFailed: ({ channel, requests }) =>
    sayEach(requests, (request) => {
      const how = request.may_have_arrived === true ? "may have arrived" : "not delivered";
      return say`${channel}: ${carriedBy(request)} ${how} ${attempt(request)}${because(request.detail)}; next attempt at ${moment(request.retry_at)}`;
    }),
  DispatchSkipped: ({ channel, requests }) =>
    sayEach(requests, (request) => say`${channel}: ${carriedBy(request)} not sent, ${plain(request.reason)}`),
  DispatchInDoubt: ({ channel, requests }) =>
    sayEach(requests, (request) => {
      const what = say`${channel}: ${carriedBy(request)} in doubt ${attempt(request)}`;
      return say`${what}${because(request.detail)}; not retried automatically`;
    }),
  DispatchAbandoned: ({ channel, requests }) =>
    sayEach(requests, (request) => {
      const why = request.refused ? "refused for good" : "out of attempts";
      const since = doubt(request.doubtful_since);
      return say`${channel}: ${carriedBy(request)} became a dead letter, ${why} ${attempt(request)}${since}${because(request.detail)}`;
    }),
  DispatchDiscarded: (data) =>
    say`an operator discarded ${decided("dead letter", data)} for ${data.channel}: ${quote(data.why)}`,
  DispatchSettled: (data) => {
    const how = data.as === "arrived" ? "as arrived" : "as left";
    return say`an operator closed ${decided("dispatch in doubt", data)} for ${data.channel} ${how}: ${quote(data.why)}`;
  },
  DispatchLost: (data) =>
    say`${data.channel}: the network lost ${decided("accepted message", data)}${because(data.detail)}`,
  DispatchClaimed: ({ channel, sources }) => say`${channel}: about to send ${carriedBy({ sources })}`,
  CircuitOpened: ({ channel, failures, until }) =>
    say`${failures} requests to ${channel} failed in a row; no request before ${moment(until)}`,
  CircuitClosed: ({ channel }) => say`requests to ${channel} succeed again`,
  ChannelSuspended: ({ channel, network, status, detail }) =>
    say`the channel ${channel} was suspended: ${other(network)} refuses all requests${status === undefined ? "" : ` (${status})`}${because(detail)}`,
  ChannelResumed: ({ channel, why }) => say`the channel ${channel} was resumed ${RESUMED[why]}`,
  WebhookSubscribed: ({ channel, types, filter }) => {
    return say`${webhook(channel)} now carries ${join(types.map(other), ", ")}${filter === undefined ? [] : say`, filtered by ${quote(filter)}`}`;
  },
  WebhookUnsubscribed: ({ channel }) => say`${webhook(channel)} now carries no events`,
} satisfies Partial<EventWords>;

/** Describes a conversion by its value and link. A reversal's value is shown without its minus sign. */
export function sayConversion({ name, value, currency, domain, short_code = "" }: DataOf<"ConversionRecorded">) {
  const worth =
    value === undefined || currency === undefined
      ? []
      : say` of ${formatAmount(Math.abs(value), currency)} ${other(currency)}`;
  return say`a ${other(name)}${worth}${domain === undefined ? [] : say` by ${link(domain, short_code)}`}`;
}

const RESUMED = {
  by_hand: "by an operator",
  credential_changed: "because its credential changed",
  delivered: "because a test was delivered",
} as const;

function webhook(channel: WebhookChannel | undefined): string {
  return channel ?? "the webhook";
}

function queuedFor(channels: readonly ChannelName[]): string {
  return channels.length === 0 ? "not dispatched" : `queued for ${channels.join(", ")}`;
}

function decided(what: string, { event_id, source }: { readonly event_id: string; readonly source: number }): Sentence {
  return say`the ${what} of position ${position(source)} (event ${other(event_id)})`;
}

function sayEach<R>(requests: readonly R[], sayOne: (request: R) => Sentence): Sentence {
  return join(requests.map(sayOne), "; ");
}

/** Says at which positions the log holds the events that a request to a network carried. */
function carriedBy({ sources }: { readonly sources: Sources }): Sentence {
  const ranges = sources.map((range) =>
    typeof range === "number" ? position(range) : join(range.map(position), " to "),
  );
  const isOne = sources.length === 1 && typeof sources[0] === "number";
  return say`${isOne ? "position" : "positions"} ${join(ranges, ", ")}`;
}

interface Attempt extends Answer {
  readonly attempt: number;
  readonly mode?: DispatchMode;
  readonly digest?: string;
}

/** Says the number of an attempt, the network's answer, and the batch or digest that carried the dispatch. */
function attempt({ attempt: number, mode, digest, ...rest }: Attempt): Sentence {
  const together = mode === undefined || mode === "single" ? "" : `, in a ${mode}`;
  const called = digest === undefined ? [] : say` ${other(digest)}`;
  return say`(attempt ${number}${answer(rest)}${together}${called})`;
}

interface Answer {
  readonly status?: number | undefined;
  readonly latency_ms?: number;
}

/** Says the status and the latency of a network's answer; empty without an answer. */
function answer({ status, latency_ms }: Answer): string {
  if (latency_ms === undefined) return status === undefined ? "" : `, ${status}`;
  return status === undefined ? `, ${latency_ms} ms` : `, ${status} in ${latency_ms} ms`;
}

/** Says since when an earlier attempt may have delivered the dispatch; empty if none may have. */
function doubt(since: string | undefined): Sentence {
  return since === undefined ? [] : say`, though an attempt of ${moment(since)} may have arrived`;
}
