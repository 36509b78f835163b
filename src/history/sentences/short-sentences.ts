import type { DataOf } from "../../../events/event-types-and-codec.ts";
import type { ChannelName, Lane } from "../../../events/channel-and-lane-names.ts";
import { countPositions, type Sources } from "../../../events/position-ranges.ts";
import { countInWords } from "../../platform/format-numbers-and-lists.ts";
import { sayConversion } from "./clicks-and-deliveries.ts";
import { SHORT_CAMPAIGN } from "./campaign.ts";
import { SHORT_OUTREACH } from "./short-outreach.ts";
import {
  join,
  link,
  moment,
  other,
  plain,
  position,
  quote,
  run,
  say,
  sayReason,
  type ShortWords,
  type Sentence,
} from "./sentence-parts.ts";

/** Short sentences, one for each event type: at most 14 words, not counting quoted texts, and no ids. */
export const SHORT: ShortWords = {
  ...SHORT_OUTREACH,
  ...SHORT_CAMPAIGN,
  LinkClicked: ({ domain, short_code, bot, probe }) => {
    const by = probe === undefined ? (bot ? "a bot" : "a person") : `a ${plain(probe)} request`;
    return say`${by} clicked ${link(domain, short_code)}`;
  },
  PersonalLinkClicked: () => say`a personal link was opened`,
  ConversionRecorded: (data) => say`${sayConversion(data)} was recorded`,
  ConversionReversed: (data) => say`${sayConversion(data)} was reversed`,
  LinkAdded: ({ domain, code, template, variant }, who) =>
    template === undefined
      ? say`${who} added ${link(domain, code)}`
      : say`${link(domain, code)} was added for variant ${other(variant ?? "")}`,
  NotificationRequested: ({ message, report }) => {
    if (report === undefined) return say`Chat was asked to announce: ${quote(message)}`;
    return report.run_id === undefined
      ? say`Chat was sent a report: ${quote(message)}`
      : say`Chat was sent the report of ${run(report.run_id)}: ${quote(message)}`;
  },
  MessageRequested: ({ text }) => say`Messaging was asked to send: ${quote(text)}`,
  ChannelTestRequested: ({ channels }, who) => say`${who} tested ${channels.map(channelName).join(", ")}`,
  DispatchRetryRequested: ({ channel, in_doubt }, who) =>
    say`${who} retried a ${in_doubt === true ? "doubtful dispatch" : "dead letter"} for ${channelName(channel)}`,
  DispatchClaimed: ({ channel, sources }) => say`${channelName(channel)} is about to send ${counted(sources)}`,
  DispatchSucceeded: ({ channel, lane, requests }) =>
    say`${channelName(channel)} received ${countDispatches(lane, requests)}`,
  DispatchFailed: ({ channel, lane, requests }) => {
    const why = sayFirstReason(requests);
    const next = requests.slice(0, 1).map(({ retry_at }) => say`. Next try at ${moment(retry_at)}`);
    return say`${channelName(channel)} did not take ${countDispatches(lane, requests)}: ${why}${join(next, "")}`;
  },
  DispatchSkipped: ({ channel, lane, requests }) =>
    say`${channelName(channel)} skipped ${countDispatches(lane, requests)}: ${plain(requests[0]?.reason ?? "")}`,
  DispatchInDoubt: ({ channel, lane, requests }) =>
    say`${countDispatches(lane, requests)} may or may not have reached ${channelName(channel)}: ${sayFirstReason(requests)}`,
  DispatchAbandoned: ({ channel, lane, requests }) =>
    say`${channelName(channel)} did not take ${countDispatches(lane, requests)}: ${sayFirstReason(requests)}`,
  DispatchDiscarded: ({ channel, why }, who) =>
    say`${who} discarded a dead letter for ${channelName(channel)}: ${quote(why)}`,
  DispatchSettled: ({ channel, as, why }, who) =>
    as === "arrived"
      ? say`${who}: a dispatch in doubt reached ${channelName(channel)}, ${quote(why)}`
      : say`${who} left a dispatch to ${channelName(channel)} as unknown, ${quote(why)}`,
  DispatchLost: ({ channel, detail }) => say`${channelName(channel)} accepted a message and lost it: ${quote(detail)}`,
  CircuitOpened: ({ channel, failures, until }) =>
    say`${channelName(channel)} paused until ${moment(until)} after ${countInWords(failures, "failure")}`,
  CircuitClosed: ({ channel }) => say`${channelName(channel)} works again`,
  ChannelSuspended: ({ channel, network, detail }) =>
    say`${channelName(channel)} was suspended: ${other(network)} refuses it${detail === "" ? [] : say`, ${quote(detail)}`}`,
  ChannelResumed: ({ channel, why }, who) => {
    if (why === "by_hand") return say`${who} resumed ${channelName(channel)}`;
    const since = why === "delivered" ? "a test was delivered" : "its credential changed";
    return say`${channelName(channel)} resumed, because ${since}`;
  },
  WebhookSubscribed: ({ channel = "webhook", types }, who) =>
    say`${who} subscribed ${channelName(channel)} to ${countInWords(types.length, "kind")} of events`,
  WebhookUnsubscribed: ({ channel = "webhook" }, who) => say`${who} unsubscribed ${channelName(channel)}`,
  AccountAuthorized: ({ user }, who) => say`${who} signed in to X as ${other(`@${user.username}`)}`,
  TokenRefreshed: ({ expires_at }) => say`X access was renewed until ${moment(expires_at)}`,
  TokenRefreshFailed: ({ dead, reason }) =>
    dead
      ? say`X no longer accepts our authorization. No run starts until an operator signs in`
      : say`X access could not be renewed: ${quote(reason)}`,
  AccountUnlinked: (_data, who) => say`${who} unlinked the X account`,
  AuthenticationsFailed: ({ addresses, failed, turned_away }) =>
    say`${countInWords(failed + turned_away, "wrong token")} from ${countInWords(addresses, "address", "addresses")}`,
  TokenUsed: ({ name }) => say`token ${other(name)} was used for the first time that day`,
  KeyRotated: (_data, who) => say`${who} rotated the master key`,
  PersonalDataRead: ({ resource, records }, who) =>
    say`${who} read personal data: ${resource}${records === undefined ? "" : `, ${countInWords(records, "record")}`}`,
  LogRestored: ({ cause: how, found_position }) =>
    say`the log continues after ${RESTORES[how]} at ${position(found_position)}`,
  LogLossAccepted: ({ reason }, who) => say`${who} accepted a loss of the log: ${plain(reason)}`,
  LogTimeCorrected: ({ at }, who) => say`${who} declared the clock right at ${moment(at)}`,
  LogVerified: ({ position: to, result, broken_position }) =>
    result === "whole"
      ? say`the log was checked up to position ${position(to)}: every hash fits`
      : say`the log does not fit${broken_position === undefined ? "" : say` at position ${position(broken_position)}`}`,
  BackupMade: () => say`a backup was made`,
  BackupRehearsed: () => say`a backup was proved`,
  EventsArchived: ({ events }) => say`${countInWords(events, "old event")} moved to the archive`,
  PersonForgotten: ({ scope }, who) =>
    scope === "tracking" ? say`the clicks of a person were erased` : say`${who} had a person forgotten`,
  PersonalDataExpired: ({ before }) => say`clicks before ${other(before)} can no longer be read`,
  PersonalKeysLost: (_data, who) => say`${who} accepted the loss of a key file`,
  ProjectionRebuilt: ({ projection, differences = 0 }) =>
    say`${other(projection)} was rebuilt: ${differences === 0 ? "nothing changed" : countInWords(differences, "difference")}`,
  WhatIfAsked: (_data, who) => say`${who} asked what other rules would have done`,
  RequestAnswered: () => say`a repeatable request got its first answer`,
};

const RESTORES: Readonly<Record<DataOf<"LogRestored">["cause"], string>> = {
  restore: "a restore from a backup",
  import: "an import",
  copy: "a move to a new place",
  operator: "a restore that an operator reported",
};

/** Returns a channel's name for use in a sentence: `Chat`, `Webhook crm`. */
export function channelName(channel: ChannelName): string {
  return channel.charAt(0).toUpperCase() + channel.slice(1).replace("-", " ");
}

/**
 * Counts the dispatches of an outcome. Only those of a webhook are called events; other lanes carry clicks,
 * conversions, notifications and retries alike, so they are called dispatches.
 */
function countDispatches(lane: Lane, requests: readonly { readonly sources: Sources }[]): string {
  const count = requests.reduce((sum, { sources }) => sum + countPositions(sources), 0);
  return lane === "events" ? countInWords(count, "event") : countInWords(count, "dispatch", "dispatches");
}

function counted(sources: Sources): string {
  return countInWords(countPositions(sources), "dispatch", "dispatches");
}

function sayFirstReason([first]: readonly { readonly detail: string }[]): Sentence {
  return sayReason(first?.detail ?? "");
}
