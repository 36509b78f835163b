// Severity, grouping and words of each kind of event in the console's list of news.
import type { NewsRun } from "../../projections/news.ts";
import { countInWords } from "../platform/format-numbers-and-lists.ts";
import type { Sentence } from "./sentences/sentence-parts.ts";
import { channelName } from "./sentences/short-sentences.ts";
import type { ChannelName } from "../../events/channel-and-lane-names.ts";

/** Severity of a line of the news. */
export type Severity =
  /** Nothing can be sent or recorded until an operator acts. */
  | "critical"
  /** Messages or data are lost unless an operator acts. */
  | "error"
  /** An outcome is unknown, or an event is unusual. */
  | "warning";

/** Severity of single events by their kind; other kinds have none. */
const SEVERITIES: Readonly<Record<string, Severity>> = {
  TokenRefreshFailed: "critical",
  "LogVerified:broken": "critical",
  DispatchLost: "error",
  RecipientHeld: "warning",
  AuthenticationsFailed: "warning",
  LogRestored: "warning",
};

const DECISIONS: ReadonlySet<string> = new Set([
  "RecipientSuppressed:by_hand",
  "RecipientSuppressed:list",
  "RecipientReleased",
  "RecipientRetryAllowed",
  "DirectMessageSent:operator",
  "DirectMessageLeft",
  "MessagesLookedUp",
  "CampaignCreated",
  "CampaignChanged",
  "CampaignEnded",
  "DispatchRetryRequested",
  "DispatchDiscarded",
  "DispatchSettled",
  "ChannelResumed",
  "WebhookSubscribed",
  "WebhookUnsubscribed",
  "AccountAuthorized",
  "AccountUnlinked",
  "KeyRotated",
  "LogLossAccepted",
  "LogTimeCorrected",
  "PersonForgotten",
  "PersonalKeysLost",
]);

/**
 * Kinds of events that become one line for an hour or more. Events of other kinds become one line for each quarter of
 * an hour.
 */
const HOURLY: ReadonlySet<string> = new Set([
  "DirectMessageReceived",
  "RecipientAdded",
  "ConsentRecorded",
  "ConversionRecorded",
]);

export function isHourly(kind: string): boolean {
  return HOURLY.has(kind);
}

export function severityOfKind(kind: string): Severity | undefined {
  return SEVERITIES[kind];
}

/** True if events of the kind are decisions of an operator. The news never merge lines about decisions. */
export function isOperatorDecision(kind: string): boolean {
  return DECISIONS.has(kind) || DECISIONS.has(kind.split(":")[0]!);
}

type Counted = readonly [lead: string, rest?: string];

/** Words, by the kind of event, for a line of the news that stands for several events. */
const WORDS: Readonly<Record<string, (count: number, channel: string) => Counted>> = {
  RecipientAdded: (count) => [`${people(count)} imported`],
  ConsentRecorded: (count) => [`${countInWords(count, "consent")} recorded`],
  "RecipientSuppressed:opt_out": (count) => [`${people(count)} opted out.`, " No run will message them again"],
  "RecipientSuppressed:opt_out_page": (count) => [
    `${people(count)} opted out on the opt-out page.`,
    " No run will message them again",
  ],
  "RecipientSuppressed:by_hand": (count) => [`${people(count)} suppressed`, " by an operator"],
  "RecipientSuppressed:list": (count) => [`${people(count)} suppressed`, " by a list"],
  "RecipientSuppressed:hash": (count) => [`${people(count)} suppressed`, " by the hash of a name"],
  RecipientHeld: (count) => [`${people(count)} may have opted out.`, " An operator has to decide"],
  RecipientReleased: (count) => [`${people(count)} may be messaged`, " after all, an operator decided"],
  RecipientRetryAllowed: (count) => [`${people(count)} may get another message`],
  DirectMessageReceived: (count) => [countInWords(count, "reply", "replies")],
  "DirectMessageSent:operator": (count) => [countInWords(count, "message"), " in doubt arrived, an operator said"],
  DirectMessageLeft: (count) => [countInWords(count, "message"), " in doubt left as unknown"],
  MessagesLookedUp: (count) => [countInWords(count, "look-up"), " of messages in doubt"],
  CampaignCreated: (count) => [`${countInWords(count, "campaign")} created`],
  CampaignChanged: (count) => [countInWords(count, "change"), " of campaigns"],
  CampaignEnded: (count) => [`${countInWords(count, "campaign")} ended`],
  RunRefused: (count) => [`${countInWords(count, "run")} refused`],
  LinkAdded: (count) => [`${countInWords(count, "link")} added`, " by an operator"],
  ConversionRecorded: (count) => [`${countInWords(count, "conversion")} recorded`],
  ConversionReversed: (count) => [`${countInWords(count, "conversion")} reversed`],
  ChannelTestRequested: (count) => [countInWords(count, "test"), " of the channels"],
  DispatchRetryRequested: (count, channel) => [
    countInWords(count, "dispatch", "dispatches"),
    ` retried for ${channel}`,
  ],
  DispatchDiscarded: (count, channel) => [countInWords(count, "dead letter"), ` discarded for ${channel}`],
  DispatchSettled: (count, channel) => [countInWords(count, "doubt"), ` about ${channel} decided`],
  DispatchLost: (count) => [`${countInWords(count, "dispatch", "dispatches")} accepted and then lost`, " by WhatsApp"],
  ChannelResumed: (count) => [countInWords(count, "channel"), " resumed by an operator"],
  WebhookSubscribed: (count) => [countInWords(count, "change"), " of what webhooks carry"],
  WebhookUnsubscribed: (count) => [countInWords(count, "webhook"), " unsubscribed"],
  AccountAuthorized: (count) => [`${countInWords(count, "sign-in")} to X`],
  AccountUnlinked: (count) => [countInWords(count, "account"), " unlinked"],
  TokenRefreshFailed: (count) => [`X refused our authorization ${countInWords(count, "time")}`],
  AuthenticationsFailed: (count) => [countInWords(count, "series", "series"), " of wrong tokens"],
  KeyRotated: (count) => [countInWords(count, "rotation"), " of the master key"],
  LogVerified: (count) => [`The log was checked ${countInWords(count, "time")}:`, " every hash fits"],
  "LogVerified:broken": (count) => [`The log does not fit,`, ` in ${countInWords(count, "check")}`],
  LogRestored: (count) => [countInWords(count, "restore"), " of the log"],
  LogLossAccepted: (count) => [countInWords(count, "loss", "losses"), " of events accepted"],
  LogTimeCorrected: (count) => [countInWords(count, "correction"), " of the clock"],
  BackupMade: (count) => [`${countInWords(count, "backup")} made`],
  BackupRehearsed: (count) => [`${countInWords(count, "backup")} proved`],
  EventsArchived: (count) => [countInWords(count, "move"), " of old events to the archive"],
  PersonForgotten: (count) => [`${people(count)} forgotten`],
  PersonalKeysLost: (count) => [countInWords(count, "key file"), " lost"],
};

function people(count: number): string {
  return countInWords(count, "person", "people");
}

/** Says how many events of a kind there were. `lead` is the part to stress. */
export function sayKind(kind: string, count: number): { readonly lead: Sentence; readonly rest: Sentence } {
  const [type = "", more = ""] = kind.split(":");
  const words = WORDS[kind] ?? WORDS[type];
  const [lead, rest = ""] = words?.(count, channelName(more as ChannelName)) ?? [`${count} × ${type}`];
  return { lead: [lead], rest: [rest] };
}

const CRITICAL_ENDS: readonly NewsRun["end"][] = [
  "not_authorized",
  "credits_depleted",
  "usage_capped",
  "sender_restricted",
  "missing_scope",
  "app_not_enrolled",
];

/** Returns the severity of a run's end in the news. A failed message alone does not raise it. */
export function severityOfEnd(end: NewsRun["end"]): Severity | undefined {
  if (CRITICAL_ENDS.includes(end)) return "critical";
  if (end === "abandoned" || end === "fault") return "error";
  return end === "too_many_failures" || end === "request_rejected" || end === "log_restored" ? "warning" : undefined;
}
