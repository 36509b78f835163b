import { DEFAULT_CAMPAIGN } from "../../../events/campaign.ts";
import type { DataOf } from "../../../events/event-types-and-codec.ts";
import type { Consent, ConsentRecord } from "../../../projections/consent.ts";
import { countInWords } from "../../platform/format-numbers-and-lists.ts";
import type { Basis, NotReachedReason, PauseReason, RunCounts, SkipReason, Usage } from "../../../events/outreach.ts";
import {
  because,
  campaign,
  join,
  other,
  mention,
  plain,
  quote,
  run,
  say,
  moment,
  type Mention,
  type Sentence,
  type EventWords,
} from "./sentence-parts.ts";

const BASES: Readonly<Record<Basis, string>> = {
  dm_first: "they wrote first",
  opt_in: "they opted in",
  none: "none",
};

export const SKIPS: Readonly<Record<SkipReason, string>> = {
  already_contacted: "already contacted",
  suppressed: "suppressed",
  no_consent: "no consent on record",
  cannot_receive_dm: "cannot receive messages from us",
  protected: "a protected account",
  self: "our own account",
  invalid_recipient: "unknown to the network",
  missing_field: "a field of the message is missing",
  too_soon: "got another message a short time ago",
  not_in_audience: "not in the campaign's audience",
};

export const OUTREACH_WORDS = {
  RecipientAdded: (data) => {
    const { recipient, name, timezone, basis, fields, blank = [], source } = data;
    const called = name === undefined ? [] : say` with the name ${quote(name)}`;
    const zone = timezone === undefined ? [] : say` in the time zone ${other(timezone)}`;
    const more = Object.entries(fields).map(([field, value]) => say`, ${other(field)} ${quote(value)}`);
    const cleared = blank.map((column) => say`, ${other(column)} blank`);
    const grounds = basis === undefined ? [] : say`; basis: ${BASES[basis]}${sayConsentEvidence(data)}`;
    const said = join([...more, ...cleared], "");
    return say`${mention(recipient)} was imported from the ${source}${called}${zone}${said}${grounds}${sayTracking(data)}`;
  },
  ConsentRecorded: (data) => {
    const basis = data.basis === undefined ? [] : say`; basis: ${BASES[data.basis]}${sayConsentEvidence(data)}`;
    const reply = data.message_id === undefined ? [] : say`, message ${other(data.message_id)}`;
    return say`the consent of ${mention(data.recipient)} was recorded${basis}${sayTracking(data)}${reply}`;
  },
  RecipientSuppressed: ({ recipient, reason, reason_text, suppressed_at, message_id }) => {
    const asked = message_id === undefined ? [] : say` in message ${other(message_id)}`;
    const quoted = reason_text === undefined ? [] : say` (${quote(reason_text)})`;
    const why = {
      by_hand: "by an operator",
      opt_out: say`because they opted out${asked}`,
      opt_out_page: "because they opted out on their page",
      list: "by a list",
      hash: "by the hash of one of their names",
    }[reason];
    const since = suppressed_at === undefined ? [] : say`, as of ${sayTime(suppressed_at)}`;
    const called = recipient === undefined ? "a recipient known only by a hash" : mention(recipient);
    return say`${called} was suppressed ${why}${quoted}${since}; no run contacts them again`;
  },
  RecipientHeld: ({ recipient, message_id, reason }) =>
    reason === "x_chat"
      ? say`${mention(recipient)} wrote message ${other(message_id)} in X Chat, whose words cannot be read; no run contacts them until an operator decides`
      : say`${mention(recipient)} may have opted out in message ${other(message_id)}; no run contacts them until an operator decides`,
  RecipientReleased: ({ recipient }) => say`an operator decided that ${mention(recipient)} may be contacted`,
  RecipientRetryAllowed: ({ recipient, run_id, campaign: name = DEFAULT_CAMPAIGN }) => {
    const by = run_id === undefined ? "an operator" : say`${run(run_id)}`;
    const why = run_id === undefined ? "" : ", because the network had refused our account, not them";
    const of = name === DEFAULT_CAMPAIGN ? [] : say` of the campaign ${campaign(name)}`;
    return say`${by} allowed one more message${of} to ${mention(recipient)}${why}`;
  },
  DirectMessageReceived: ({ recipient, message_id, received_at }) =>
    say`${mention(recipient)} sent us message ${other(message_id)} at ${moment(received_at)}`,
  DirectMessagesSeen: ({ recipient, seen_at }) =>
    say`${mention(recipient)} had read our messages at ${moment(seen_at)}`,
  DirectMessageAttempted: ({ run_id, recipient, text, variant, template_name, day, timezone }) => {
    const zone = timezone === undefined ? [] : say` ${other(timezone)}`;
    const template = template_name === undefined ? [] : say` of ${quote(template_name)}`;
    return say`${run(run_id)} is sending to ${mention(recipient)}, quota day ${other(day)}${zone}, variant ${other(variant)}${template}: ${quote(text)}`;
  },
  DirectMessageSent: ({ recipient, message_id = "", settled_by, why }) => {
    if (settled_by === "operator")
      return say`an operator says that the message to ${mention(recipient)} arrived${because(why)}`;
    const found = settled_by === "answer" ? "" : ", as the conversation shows";
    return say`message ${other(message_id)} was sent to ${mention(recipient)}${found}`;
  },
  DirectMessageSkipped: ({ run_id, recipient, reason, detail, found }) => {
    const ours =
      found === undefined
        ? []
        : say`: message ${other(found.message_id)} of ${moment(found.sent_at)} is in the conversation`;
    return say`${run(run_id)} skipped ${mention(recipient)}, ${SKIPS[reason]}${because(detail)}${ours}`;
  },
  DirectMessageFailed: ({ recipient, reason, detail, frees_quota, retry }) => {
    const place = frees_quota ? "it no longer counts against the quota" : "it still counts against the quota";
    const next = retry ? "a later run may retry it" : "only an operator can allow a retry";
    return say`the message to ${mention(recipient)} failed, ${plain(reason)}${because(detail)}; ${place}, and ${next}`;
  },
  DirectMessageInDoubt: ({ recipient, detail }) =>
    say`the message to ${mention(recipient)} is in doubt${because(detail)}`,
  DirectMessageLeft: ({ recipient, why }) =>
    say`an operator left the message to ${mention(recipient)} in doubt${because(why)}`,
  MessagesLookedUp: ({ in_doubt, sent, not_delivered, detail }) => {
    const left = in_doubt - sent - not_delivered;
    return say`${in_doubt} messages in doubt were looked up: ${sent} sent, ${not_delivered} not delivered, ${left} still in doubt${because(detail)}`;
  },
} satisfies Partial<EventWords>;

const OPENINGS: Readonly<Record<Basis, string>> = { dm_first: "Wrote first", opt_in: "Opted in", none: "No consent" };

/** Describes a recipient's consent in one sentence: why they may be contacted, and if their clicks may be recorded. */
export function describeConsent({ basis, consent, tracking, inbound, wrote_at, consents_for }: Consent): Sentence {
  const { status, ...evidence } = tracking;
  const wrote = inbound ? say`Wrote first${sayEvidence({ at: wrote_at, source: "message" })}` : undefined;
  const shown = inbound ? consent : { basis, ...consent };
  const agreed = shown === null ? undefined : say`${OPENINGS[shown.basis]}${sayEvidence(shown)}`;
  const named = Object.entries(consents_for ?? {}).map(
    ([name, own]) => say`${OPENINGS[own.basis].toLowerCase()} for ${quote(name)} alone${sayEvidence(own)}`,
  );
  const grounds = [wrote, agreed, ...named].filter((sentence) => sentence !== undefined);
  return say`${join(grounds, "; ")}; tracking ${status}${sayEvidence(evidence)}.`;
}

/** Evidence of a consent: when and where the recipient gave it, and to which wording. */
interface Evidence {
  readonly at?: string | undefined;
  readonly source?: string | undefined;
  readonly text?: string | undefined;
}

function sayConsentEvidence({
  consent_at: at,
  consent_source: source,
  consent_text: text,
  consent_for: topic,
}: ConsentRecord): Sentence {
  return [...(topic === undefined ? [] : say` for ${quote(topic)} alone`), ...sayEvidence({ at, source, text })];
}

function sayTracking(data: ConsentRecord): Sentence {
  const { tracking, tracking_at: at, tracking_source: source, tracking_text: text } = data;
  return tracking === undefined ? [] : say`; tracking ${tracking}${sayEvidence({ at, source, text })}`;
}

/**
 * Says when, where and to which wording a recipient consented, such as ` on 2026-03-02 at https://shop.example/form
 * ("Yes, send me news")`.
 */
function sayEvidence({ at, source, text }: Evidence): Sentence {
  const when = at === undefined ? [] : say` on ${sayTime(at)}`;
  const where = source === undefined ? [] : say` ${/^https?:/.test(source) ? "at" : "by"} ${other(source)}`;
  const wording = text === undefined ? [] : say` (${quote(text)})`;
  return say`${when}${where}${wording}`;
}

/** Writes the day or time of a consent. */
function sayTime(at: string): Mention {
  return at.includes("T") ? moment(at) : other(at);
}

export const RUN_WORDS = {
  RunStarted: ({ run_id, dry_run, rules, ...selection }) => {
    const template = rules?.template_name === undefined ? [] : say` with the message ${quote(rules.template_name)}`;
    return say`${run(run_id, dry_run ? "dry run" : "run")} started${template}${describeSelection(selection)}`;
  },
  RunPaused: ({ run_id, reason, until }) => say`${run(run_id)} waited until ${moment(until)}, ${PAUSES[reason]}`,
  RunStopRequested: ({ run_id }) => say`a stop of ${run(run_id)} was requested`,
  RecipientRequested: ({ run_id, recipient }) => say`${run(run_id)} was asked to write to ${mention(recipient)} next`,
  RecipientNotReached: ({ run_id, recipient, reason }) =>
    say`${run(run_id)} did not write to ${mention(recipient)}, ${NOT_REACHED_WORDS[reason] ?? `it ended before: ${plain(reason)}`}`,
  InboxRead: ({ run_id, messages, newest_id }) => {
    const upTo = newest_id === undefined ? [] : say`, up to ${other(newest_id)}`;
    if (run_id === undefined) return say`${messages} messages in the inbox were read after a gap in the signals${upTo}`;
    return say`${run(run_id)} read ${messages} messages in the inbox${upTo}`;
  },
  SignalStreamChanged: ({ open, details }) =>
    say`the stream of signals ${open ? "is open" : "does not open"}${because(details.join("; "))}`,
  SignalsReceived: ({ messages, chats, usage }) =>
    say`${messages} charged signals arrived, ${chats} of them of X Chat${charged(usage)}`,
  SourceRead: ({ run_id, source, scope, people, next }) => {
    const end = next === undefined ? ", to its end" : "";
    return say`${run(run_id)} went through ${people} people of the source ${plain(source)}, ${quote(scope)}${end}`;
  },
  RunFinished: ({ run_id, reason, until, usage, ...counts }) =>
    say`${run(run_id)} ended, ${plain(reason)}${sayUntil(until)}: ${formatCounts(counts)}${charged(usage)}`,
  RunAbandoned: ({ run_id, ...counts }) =>
    say`${run(run_id)} was closed after its process died: ${formatCounts(counts)}`,
  RunRefused: ({ reason, until, day, used, campaign = "" }) => {
    if (reason === "clock_skewed") {
      return say`a run was refused: the clocks of its machine and of the log are too far apart`;
    }
    if (reason === "window_closed") return say`a run was refused: the sending window is closed${sayUntil(until)}`;
    if (reason === "unknown_campaign") return say`a run was refused: no campaign is called ${quote(campaign)}`;
    if (reason === "campaign_ended") return say`a run was refused: the campaign ${quote(campaign)} has ended`;
    return say`a run was refused, ${plain(reason)}: ${used} used on ${other(day)}`;
  },
  DryRunRecipientListed: ({ run_id, recipient, variant, reason, detail }) => {
    const why = reason === undefined ? "" : SKIPS[reason];
    const what =
      variant === undefined
        ? say`skip ${mention(recipient)}: ${why}${because(detail)}`
        : say`send variant ${other(variant)} to ${mention(recipient)}`;
    return say`${run(run_id, "dry run")} found that a run would ${what}`;
  },
  DryRunFinished: ({ run_id, reason, until, would_send, would_skip, usage }) =>
    say`${run(run_id, "dry run")} ended, ${plain(reason)}${sayUntil(until)}: it would send to ${would_send} and skip ${would_skip}${charged(usage)}`,
} satisfies Partial<EventWords>;

function sayUntil(until: string | undefined): Sentence {
  return until === undefined ? [] : say` until ${moment(until)}`;
}

/**
 * Words for why a run did not write to a requested recipient. The reason that the run ended first is not among them.
 */
export const NOT_REACHED_WORDS: Readonly<Partial<Record<NotReachedReason, string>>> = {
  held: "an operator has to read their reply first",
  failed_before: "an earlier message failed, and no retry is allowed",
  left_out: "it is for other recipients",
  not_in_audience: "they are not in the campaign's audience",
};

/**
 * Says which limits a run has, such as ` with at most 20 messages for variant A`; empty for a run for all recipients.
 */
export function describeSelection({
  campaign: name,
  limit,
  variant,
  basis,
  source,
  recipients,
}: RunSelection): Sentence {
  return [
    ...(name === undefined ? [] : say` of the campaign ${campaign(name)}`),
    ...(recipients === undefined ? [] : say` for ${countInWords(recipients, "named recipient")}`),
    ...(limit === undefined ? [] : say` with at most ${limit} messages`),
    ...(variant === undefined ? [] : say` for variant ${other(variant)}`),
    ...(basis === undefined ? [] : say` for recipients with the basis ${plain(basis)}`),
    ...(source === undefined ? [] : say` from the source ${plain(source)}`),
  ];
}

type RunSelection = Omit<DataOf<"RunStarted">, "run_id" | "dry_run" | "rules">;

export const PAUSES: Readonly<Record<PauseReason, string>> = {
  pace: "to spread the messages",
  rate_limited: "for the network's rate limit",
  network_unavailable: "because the network did not answer",
  settling: "for the network to show a message that is in doubt",
  window_closed: "for the sending window to open",
};

function charged(usage: Usage | undefined): string {
  return usage === undefined ? "" : `; the network charges at most ${usage.usd} USD`;
}

export function formatCounts({ sent, skipped, failed, in_doubt }: RunCounts): string {
  return `${sent} sent, ${skipped} skipped, ${failed} failed, ${in_doubt} in doubt`;
}
