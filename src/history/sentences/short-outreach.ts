import type { DataOf } from "../../../events/event-types-and-codec.ts";
import type { FailureReason, RunCounts } from "../../../events/outreach.ts";
import { countInWords, grouped } from "../../platform/format-numbers-and-lists.ts";
import { NOT_REACHED_WORDS, PAUSES, SKIPS } from "./outreach.ts";
import { mention, moment, other, plain, quote, run, say, type Sentence } from "./sentence-parts.ts";
import type { ShortWords } from "./sentence-parts.ts";

/** Short sentences about recipients, messages and runs. */
export const SHORT_OUTREACH = {
  RecipientAdded: ({ recipient }, who) => say`${who} imported ${mention(recipient)}`,
  ConsentRecorded: ({ recipient, basis, consent_at, consent_for, tracking }) => {
    const agreed = basis === undefined ? "" : `: ${basis === "none" ? "none" : CONSENTS[basis]}`;
    const on = basis === undefined || consent_at === undefined ? [] : say` on ${other(consent_at.slice(0, 10))}`;
    const topic = consent_for === undefined ? [] : say` for ${quote(consent_for)} alone`;
    return say`consent of ${mention(recipient)} recorded${agreed}${topic}${on}${tracking === undefined ? "" : `, tracking ${tracking}`}`;
  },
  RecipientSuppressed: ({ recipient, reason }, who) => {
    const named = recipient === undefined ? "a person" : mention(recipient);
    if (reason === "opt_out_page") return say`${named} opted out on the opt-out page. No run will message them again`;
    if (reason === "opt_out") return say`${named} opted out. No run will message them again`;
    return say`${who} suppressed ${named}${reason === "list" ? " by a list" : reason === "hash" ? " by a hash" : ""}`;
  },
  RecipientHeld: ({ recipient, reason }) =>
    say`${mention(recipient)} ${reason === "x_chat" ? "wrote in X Chat" : "may have opted out"}. An operator has to decide`,
  RecipientReleased: ({ recipient }, who) => say`${who} decided that ${mention(recipient)} may be messaged`,
  RecipientRetryAllowed: ({ recipient, run_id }, who) =>
    say`${run_id === undefined ? who : "the run"} allowed another message to ${mention(recipient)}`,
  DirectMessageReceived: ({ recipient }) => say`${mention(recipient)} wrote to us`,
  DirectMessagesSeen: ({ recipient }) => say`${mention(recipient)} read our message`,
  DirectMessageAttempted: ({ recipient, variant }) => say`sending to ${mention(recipient)} (variant ${other(variant)})`,
  DirectMessageSent: ({ recipient, settled_by, why }, who) => {
    if (settled_by === "operator")
      return say`${who} said that the message to ${mention(recipient)} arrived${why === undefined ? [] : say`: ${quote(why)}`}`;
    return say`sent to ${mention(recipient)}${settled_by === "answer" ? "" : ", found in the conversation"}`;
  },
  DirectMessageSkipped: ({ recipient, reason }) => say`skipped ${mention(recipient)}: ${SKIPS[reason]}`,
  DirectMessageFailed: ({ recipient, reason }) => say`not delivered to ${mention(recipient)}: ${FAILURES[reason]}`,
  DirectMessageInDoubt: ({ recipient, detail }) =>
    say`in doubt: ${mention(recipient)}${detail === "" ? [] : say`. ${other(detail)}`}`,
  DirectMessageLeft: ({ recipient, why }, who) =>
    say`${who} left the message to ${mention(recipient)} as unknown: ${quote(why)}`,
  MessagesLookedUp: ({ in_doubt, sent, not_delivered }, who) =>
    say`${who} looked up ${countInWords(in_doubt, "message")} in doubt: ${sent} sent, ${not_delivered} not delivered`,
  RunStarted: ({ run_id, dry_run, rules }, who) =>
    say`${who} started ${dry_run ? "a dry run" : run(run_id)}${templateIn(rules)}`,
  RunPaused: ({ reason, until }) => say`waited ${PAUSES[reason]}, until ${moment(until)}`,
  RunStopRequested: ({ run_id }, who) => say`${who} stopped ${run(run_id)}`,
  RecipientRequested: ({ run_id, recipient }, who) =>
    say`${who} asked ${run(run_id)} to write to ${mention(recipient)}`,
  RecipientNotReached: ({ recipient, reason }) =>
    say`not reached: ${mention(recipient)}, ${NOT_REACHED_WORDS[reason] ?? `the run ended (${plain(reason)})`}`,
  InboxRead: ({ run_id, messages }) =>
    say`${run_id === undefined ? "after a gap in the signals, reachlog" : "the run"} read ${countInWords(messages, "message")} in the inbox`,
  SignalStreamChanged: ({ open }) => say`the stream of signals ${open ? "is open" : "does not open"}`,
  SignalsReceived: ({ messages }) => say`${countInWords(messages, "charged signal")} arrived`,
  SourceRead: ({ source, people }) =>
    say`the run read ${countInWords(people, "person", "people")} of the ${plain(source)}`,
  RunFinished: ({ run_id, reason, ...counts }) => say`${run(run_id)}: ${sayCounts(counts)}${sayRunEnd(reason)}`,
  RunAbandoned: ({ run_id, ...counts }) => say`${run(run_id)} cut off by a restart: ${sayCounts(counts)}`,
  RunRefused: ({ reason, until, used, campaign = "" }, who) => {
    if (reason === "daily_limit_reached") return say`a run of ${who} was refused: the day's ${used} messages are used`;
    if (reason === "clock_skewed") return say`a run of ${who} was refused: two clocks differ too much`;
    if (reason === "unknown_campaign")
      return say`a run of ${who} was refused: no campaign is called ${other(campaign)}`;
    if (reason === "campaign_ended") return say`a run of ${who} was refused: the campaign ${other(campaign)} has ended`;
    const opens = until === undefined ? [] : say` until ${moment(until)}`;
    return say`a run of ${who} was refused: the sending window is closed${opens}`;
  },
  DryRunRecipientListed: ({ recipient, reason, variant }) =>
    variant === undefined
      ? say`${mention(recipient)} would be skipped${reason === undefined ? "" : `: ${SKIPS[reason]}`}`
      : say`${mention(recipient)} would get variant ${other(variant)}`,
  DryRunFinished: ({ would_send, would_skip, skips }, who) => {
    const contacted = skips?.["already_contacted"] ?? 0;
    const more = contacted === 0 ? "" : `, ${grouped(contacted)} were contacted earlier`;
    return say`${who} made a dry run: ${would_send} would get a message, ${would_skip - contacted} would be skipped${more}`;
  },
} satisfies Partial<ShortWords>;

const CONSENTS = { opt_in: "opted in", dm_first: "wrote first" } as const;

function templateIn(rules: DataOf<"RunStarted">["rules"]): Sentence {
  return rules?.template_name === undefined ? [] : say`: ${other(rules.template_name)}`;
}

const FAILURES: Readonly<Record<FailureReason, string>> = {
  recipient_closed: "their account takes no messages",
  not_permitted: "X does not permit it",
  rejected: "X rejected the message",
  not_delivered: "it did not arrive",
  unreachable: "X did not answer",
  rate_limited: "X's limit was reached",
  withdrawn: "the run ended first",
  suppressed: "they asked us to stop",
  unauthorized: "X no longer accepts our authorization",
  credits_depleted: "the balance at X is empty",
  usage_capped: "a usage cap at X is reached",
  sender_restricted: "X restricts our account",
  missing_scope: "the authorization is too narrow",
  app_not_enrolled: "the X app has no access",
};

/** Words for unusual ends of a run, placed at the end of its sentence. */
const UNUSUAL_ENDS: Partial<Record<DataOf<"RunFinished">["reason"], string>> = {
  limit_reached: "limit reached",
  daily_limit_reached: "quota used up",
  window_closed: "sending window closed",
  time_limit: "time limit reached",
  stopped: "stopped by an operator",
  too_many_failures: "too many failures",
  not_authorized: "X authorization lost",
  network_unavailable: "X did not answer",
  request_rejected: "X refused a request",
  log_restored: "log restored",
  clock_skewed: "clocks differed",
  credits_depleted: "X credits used up",
  usage_capped: "X usage cap reached",
  sender_restricted: "X restricted our account",
  missing_scope: "authorization too narrow",
  app_not_enrolled: "X app without access",
  fault: "an internal error",
};

/** Counts of a run. `contacted`: recipients contacted earlier; undefined if `skipped` counts them too. */
export interface ReportedCounts extends RunCounts {
  readonly contacted?: number;
}

/** Says how many messages a run has sent, and how many recipients it skipped or failed to reach. */
export function sayCounts({ sent, skipped, contacted = 0, failed, in_doubt }: ReportedCounts): string {
  const others = [
    `${grouped(skipped)} skipped`,
    `${grouped(contacted)} contacted earlier`,
    `${grouped(failed)} failed`,
    `${grouped(in_doubt)} in doubt`,
  ];
  return [`${grouped(sent)} sent`, ...others.filter((one) => !one.startsWith("0 "))].join(", ");
}

/** Says why a run ended, after its counts; empty for the usual end, when no recipient is left. */
export function sayRunEnd(reason: DataOf<"RunFinished">["reason"]): string {
  const words = UNUSUAL_ENDS[reason];
  return words === undefined ? "" : `, then: ${words}`;
}
