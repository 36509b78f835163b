import type { DataOf } from "../../../../events/catalog.ts";
import type { ChannelName } from "../../../../events/channel.ts";
import { because, plain, quoted } from "./phrases.ts";

/** What is told of clicks, of what is asked for, and of what became of it on the channels. */
export const DELIVERY_WORDS = {
  LinkClicked: ({ event, domain, short_code, original_url, bot, channels }: DataOf<"LinkClicked">) =>
    `a ${bot ? "bot" : "person"} clicked ${domain}/${short_code} (${quoted(event)}), which leads to ` +
    `${quoted(original_url)}; ${owedTo(channels)}`,
  NotificationRequested: ({ service, level, message }: DataOf<"NotificationRequested">) =>
    `a notification of level ${level} was requested for ${quoted(service)}: ${quoted(message)}; ${owedTo(["chat"])}`,
  MessageRequested: ({ text }: DataOf<"MessageRequested">) =>
    `a message was requested: ${quoted(text)}; ${owedTo(["messaging"])}`,
  ChannelTestRequested: ({ channels }: DataOf<"ChannelTestRequested">) =>
    `a test of the channels was requested; ${owedTo(channels)}`,
  DispatchRetryRequested: (data: DataOf<"DispatchRetryRequested">) => {
    const { event_id, source, channel, doubtful_since, may_double } = data;
    const double = may_double === true ? ", though it may arrive twice" : "";
    return `the dead letter of position ${source} (event ${event_id}) was taken up again${double}${doubt(doubtful_since)}; ${owedTo([channel])}`;
  },
  DispatchSucceeded: (data: DataOf<"DispatchSucceeded">) => {
    const { owed, channel, attempt, status, latency_ms, network_id, digest } = data;
    const as = network_id === undefined ? "" : ` as ${quoted(network_id)}`;
    return `${channel} took what position ${owed} owed${as}, at attempt ${attempt}${answer({ status, latency_ms })}${together(digest)}`;
  },
  DispatchFailed: (data: DataOf<"DispatchFailed">) => {
    const { owed, channel, attempt, detail, retry_at, digest, may_have_arrived } = data;
    const not = may_have_arrived === true ? "may not have taken" : "did not take";
    return `${channel} ${not} what position ${owed} owed, at attempt ${attempt}${answer(data)}${together(digest)}${because(detail)}; next attempt at ${retry_at}`;
  },
  DispatchSkipped: ({ owed, channel, reason }: DataOf<"DispatchSkipped">) =>
    `what position ${owed} owed to ${channel} was not sent, ${plain(reason)}`,
  DispatchInDoubt: (data: DataOf<"DispatchInDoubt">) => {
    const { owed, channel, attempt, detail, digest } = data;
    return `it is in doubt whether ${channel} took what position ${owed} owed, at attempt ${attempt}${answer(data)}${together(digest)}${because(detail)}; it is not sent again by itself`;
  },
  DispatchDiscarded: ({ event_id, source, channel, why }: DataOf<"DispatchDiscarded">) =>
    `the dead letter of position ${source} (event ${event_id}) for ${channel} was discarded by hand: ${quoted(why)}`,
  ChannelSuspended: ({ channel, network, status, detail }: DataOf<"ChannelSuspended">) =>
    `the channel ${channel} was suspended: ${network} refuses it as a whole${answer({ status })}${because(detail)}`,
  ChannelResumed: ({ channel, why }: DataOf<"ChannelResumed">) => `the channel ${channel} was resumed, ${RESUMED[why]}`,
  DispatchAbandoned: (data: DataOf<"DispatchAbandoned">) => {
    const { owed, channel, attempt, detail, refused, digest, doubtful_since } = data;
    const why = refused ? "refused for good" : "out of attempts";
    return `what position ${owed} owed to ${channel} became a dead letter, ${why} at attempt ${attempt}${answer(data)}${doubt(doubtful_since)}${together(digest)}${because(detail)}`;
  },
};

const RESUMED = {
  by_hand: "by hand",
  credential_changed: "since its credential is another one now",
  delivered: "since the network took a test",
} as const;

function owedTo(channels: readonly ChannelName[]): string {
  return channels.length === 0 ? "owed to no channel" : `owed to ${channels.join(", ")}`;
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

/** Of clicks that one message told: they share its fate. */
function together(digest: string | undefined): string {
  return digest === undefined ? "" : `, told together with others as digest ${digest}`;
}
