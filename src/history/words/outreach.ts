import type { DataOf } from "../../../events/catalog.ts";
import type { Basis, PauseReason, SkipReason, Usage } from "../../../events/outreach.ts";
import { because, nameOf, plain, quoted } from "./phrases.ts";

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
    const called = name === undefined ? "" : ` with the name ${quoted(name)}`;
    const more = Object.entries(fields).map(([field, value]) => `, ${field} ${quoted(value)}`);
    return `${nameOf(recipient)} was imported from the ${source}${called}${more.join("")}; basis for writing: ${BASES[basis]}`;
  },
  RecipientSuppressed: ({ recipient, reason, message_id }: DataOf<"RecipientSuppressed">) => {
    const asked = message_id === undefined ? "" : ` by message ${message_id}`;
    const why = reason === "by_hand" ? "by hand" : `because they opted out${asked}`;
    return `${nameOf(recipient)} was suppressed ${why}, never to be written to`;
  },
  RecipientRetryAllowed: ({ recipient, run_id }: DataOf<"RecipientRetryAllowed">) =>
    `one more message to ${nameOf(recipient)} was allowed ${run_id === undefined ? "by hand" : `by run ${run_id}, since the network refused the account and not them`}`,
  DirectMessageReceived: ({ recipient, message_id, received_at }: DataOf<"DirectMessageReceived">) =>
    `${nameOf(recipient)} wrote to us at ${received_at}, message ${message_id}`,
  DirectMessageAttempted: ({ run_id, recipient, text, variant, day, timezone }: DataOf<"DirectMessageAttempted">) =>
    `run ${run_id} set out to write to ${nameOf(recipient)}, counted for ${day}${timezone === undefined ? "" : ` in ${timezone}`}, variant ${variant}: ${quoted(text)}`,
  DirectMessageSent: ({ recipient, message_id, settled_by }: DataOf<"DirectMessageSent">) =>
    settled_by === "answer"
      ? `the message to ${nameOf(recipient)} was sent: the network took it as message ${message_id}`
      : `the message to ${nameOf(recipient)} was sent: it was found in the conversation as message ${message_id}`,
  DirectMessageSkipped: ({ run_id, recipient, reason, detail, found }: DataOf<"DirectMessageSkipped">) => {
    const ours = found === undefined ? "" : `: message ${found.message_id} of ${found.sent_at} is in the conversation`;
    return `run ${run_id} skipped ${nameOf(recipient)}, ${SKIPS[reason]}${because(detail)}${ours}`;
  },
  DirectMessageFailed: ({ recipient, reason, detail, frees_quota, retry }: DataOf<"DirectMessageFailed">) => {
    const place = frees_quota ? "its place in the day's quota is free again" : "it keeps its place in the day's quota";
    const next = retry ? "a later run may try again" : "it is not tried again unless allowed by hand";
    return `the message to ${nameOf(recipient)} failed, ${plain(reason)}${because(detail)}; ${place}, and ${next}`;
  },
  DirectMessageInDoubt: ({ recipient, detail }: DataOf<"DirectMessageInDoubt">) =>
    `it is in doubt whether the message to ${nameOf(recipient)} was sent${because(detail)}`,
};

/** A run as a whole. */
export const RUN_WORDS = {
  RunStarted: ({ run_id, dry_run }: DataOf<"RunStarted">) => `${dry_run ? "dry run" : "run"} ${run_id} started`,
  RunPaused: ({ run_id, reason, until }: DataOf<"RunPaused">) =>
    `run ${run_id} waited until ${until}, ${PAUSES[reason]}`,
  InboxRead: ({ run_id, messages, newest_id }: DataOf<"InboxRead">) =>
    `run ${run_id} read ${messages} messages of our conversations${newest_id === undefined ? "" : `, all up to ${newest_id}`}`,
  SourceRead: ({ run_id, source, scope, people, next }: DataOf<"SourceRead">) =>
    `run ${run_id} worked off ${people} people of the source ${plain(source)}, ${quoted(scope)}${next === undefined ? ", to its end" : ""}`,
  RunFinished: ({ run_id, reason, usage, ...counts }: DataOf<"RunFinished">) =>
    `run ${run_id} ended, ${plain(reason)}: ${counted(counts)}${charged(usage)}`,
  RunAbandoned: ({ run_id, ...counts }: DataOf<"RunAbandoned">) =>
    `run ${run_id}, whose process had died, was closed: ${counted(counts)}`,
  RunRefused: ({ reason, day, used }: DataOf<"RunRefused">) =>
    `a run was refused, ${plain(reason)}: ${used} used on ${day}`,
  DryRunFinished: ({ run_id, reason, would_send, would_skip, usage }: DataOf<"DryRunFinished">) =>
    `dry run ${run_id} ended, ${plain(reason)}: it would send to ${would_send} and skip ${would_skip}${charged(usage)}`,
};

const PAUSES: Readonly<Record<PauseReason, string>> = {
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
