import type { DataOf } from "../../../events/catalog.ts";
import type { Basis, PauseReason, SkipReason, Usage } from "../../../events/outreach.ts";
import { because, join, other, person, plain, quote, run, say, time } from "./phrases.ts";

const BASES: Readonly<Record<Basis, string>> = {
  dm_first: "they wrote first",
  opt_in: "they opted in",
  none: "none",
};

const SKIPS: Readonly<Record<SkipReason, string>> = {
  already_contacted: "who was written to before",
  suppressed: "who is suppressed",
  no_consent: "of whom no consent is recorded",
  cannot_receive_dm: "who cannot receive messages from us",
  protected: "whose account is protected",
  self: "who is the account itself",
  invalid_recipient: "whom the network does not know",
  missing_field: "for whom a field of the message is missing",
};

/** One person. */
export const OUTREACH_WORDS = {
  RecipientAdded: ({ recipient, name, basis, fields, source }: DataOf<"RecipientAdded">) => {
    const called = name === undefined ? [] : say` with the name ${quote(name)}`;
    const more = Object.entries(fields).map(([field, value]) => say`, ${other(field)} ${quote(value)}`);
    return say`${person(recipient)} was imported from the ${source}${called}${join(more, "")}; basis for writing: ${BASES[basis]}`;
  },
  RecipientSuppressed: ({ recipient, reason, message_id }: DataOf<"RecipientSuppressed">) => {
    const asked = message_id === undefined ? [] : say` by message ${other(message_id)}`;
    const why = reason === "by_hand" ? "by hand" : say`because they opted out${asked}`;
    return say`${person(recipient)} was suppressed ${why}, never to be written to`;
  },
  RecipientRetryAllowed: ({ recipient, run_id }: DataOf<"RecipientRetryAllowed">) => {
    const by =
      run_id === undefined ? "by hand" : say`by run ${run(run_id)}, since the network refused the account and not them`;
    return say`one more message to ${person(recipient)} was allowed ${by}`;
  },
  DirectMessageReceived: ({ recipient, message_id, received_at }: DataOf<"DirectMessageReceived">) =>
    say`${person(recipient)} wrote to us at ${time(received_at)}, message ${other(message_id)}`,
  DirectMessageAttempted: ({ run_id, recipient, text, variant, day, timezone }: DataOf<"DirectMessageAttempted">) => {
    const zone = timezone === undefined ? [] : say` in ${other(timezone)}`;
    return say`run ${run(run_id)} set out to write to ${person(recipient)}, counted for ${other(day)}${zone}, variant ${other(variant)}: ${quote(text)}`;
  },
  DirectMessageSent: ({ recipient, message_id, settled_by }: DataOf<"DirectMessageSent">) => {
    const how = settled_by === "answer" ? "the network took it" : "it was found in the conversation";
    return say`the message to ${person(recipient)} was sent: ${how} as message ${other(message_id)}`;
  },
  DirectMessageSkipped: ({ run_id, recipient, reason, detail, found }: DataOf<"DirectMessageSkipped">) => {
    const ours =
      found === undefined
        ? []
        : say`: message ${other(found.message_id)} of ${time(found.sent_at)} is in the conversation`;
    return say`run ${run(run_id)} skipped ${person(recipient)}, ${SKIPS[reason]}${because(detail)}${ours}`;
  },
  DirectMessageFailed: ({ recipient, reason, detail, frees_quota, retry }: DataOf<"DirectMessageFailed">) => {
    const place = frees_quota ? "its place in the day's quota is free again" : "it keeps its place in the day's quota";
    const next = retry ? "a later run may try again" : "it is not tried again unless allowed by hand";
    return say`the message to ${person(recipient)} failed, ${plain(reason)}${because(detail)}; ${place}, and ${next}`;
  },
  DirectMessageInDoubt: ({ recipient, detail }: DataOf<"DirectMessageInDoubt">) =>
    say`it is in doubt whether the message to ${person(recipient)} was sent${because(detail)}`,
};

/** A run as a whole. */
export const RUN_WORDS = {
  RunStarted: ({ run_id, dry_run }: DataOf<"RunStarted">) => say`${dry_run ? "dry run" : "run"} ${run(run_id)} started`,
  RunPaused: ({ run_id, reason, until }: DataOf<"RunPaused">) =>
    say`run ${run(run_id)} waited until ${time(until)}, ${PAUSES[reason]}`,
  RunStopRequested: ({ run_id }: DataOf<"RunStopRequested">) => say`run ${run(run_id)} was asked to stop`,
  InboxRead: ({ run_id, messages, newest_id }: DataOf<"InboxRead">) => {
    const upTo = newest_id === undefined ? [] : say`, all up to ${other(newest_id)}`;
    return say`run ${run(run_id)} read ${messages} messages of our conversations${upTo}`;
  },
  SourceRead: ({ run_id, source, scope, people, next }: DataOf<"SourceRead">) => {
    const end = next === undefined ? ", to its end" : "";
    return say`run ${run(run_id)} worked off ${people} people of the source ${plain(source)}, ${quote(scope)}${end}`;
  },
  RunFinished: ({ run_id, reason, usage, ...counts }: DataOf<"RunFinished">) =>
    say`run ${run(run_id)} ended, ${plain(reason)}: ${counted(counts)}${charged(usage)}`,
  RunAbandoned: ({ run_id, ...counts }: DataOf<"RunAbandoned">) =>
    say`run ${run(run_id)}, whose process had died, was closed: ${counted(counts)}`,
  RunRefused: ({ reason, day, used }: DataOf<"RunRefused">) =>
    reason === "clock_skewed"
      ? say`a run was refused, since the clocks of its machine and of the log are too far apart`
      : say`a run was refused, ${plain(reason)}: ${used} used on ${other(day)}`,
  DryRunFinished: ({ run_id, reason, would_send, would_skip, usage }: DataOf<"DryRunFinished">) =>
    say`dry run ${run(run_id)} ended, ${plain(reason)}: it would send to ${would_send} and skip ${would_skip}${charged(usage)}`,
};

/** Why a run waits. */
export const PAUSES: Readonly<Record<PauseReason, string>> = {
  pace: "to spread the messages",
  rate_limited: "as the network asked",
  network_unavailable: "since the network gave no answer",
  settling: "for the network to show a message that is in doubt",
};

function charged(usage: Usage | undefined): string {
  return usage === undefined ? "" : `; the network charges at most ${usage.usd} USD`;
}

type Counts = Pick<DataOf<"RunFinished">, "sent" | "skipped" | "failed" | "in_doubt">;

function counted({ sent, skipped, failed, in_doubt }: Counts): string {
  return `${sent} sent, ${skipped} skipped, ${failed} failed, ${in_doubt} in doubt`;
}
