import type { LogStore } from "../../events/event-types-and-codec.ts";
import { markOfErased } from "../../events/declare-personal-members.ts";
import type { OpenAttempt } from "../../projections/current-run.ts";
import { SERVICE_METADATA, type EventMetadata } from "../log/event-log.ts";
import { type SentDm, SocialError } from "../networks/network.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { readConversation, withoutOthers } from "./find-what-restored-log-lacks.ts";
import type { OutreachContext, Waiting } from "./run-context.ts";
import { createRetry, QUICK_ATTEMPTS_MAX } from "./pacing-and-retries.ts";
import { recordOutcome } from "./send.ts";

/**
 * Age up to which a message must be visible in a conversation, in ms: 28 days. X shows 30; two days less allow for
 * wrong clocks.
 */
const VISIBLE_FOR_MS = 28 * 24 * 3_600_000;

/**
 * Number of reads, `settleMs` apart, in which a message must be missing in the conversation before it counts as not
 * delivered.
 */
const ABSENT_READS = 2;

/**
 * Settles messages in doubt by reading their conversations: a found message counts as sent, one missing twice as not
 * delivered. Sends nothing. Returns why a message stays in doubt, if one does.
 */
export async function settleOpen(
  context: OutreachContext,
  waiting: Waiting,
  metadata: EventMetadata = SERVICE_METADATA,
): Promise<string | undefined> {
  let left: string | undefined;
  const attempts = new Map(context.projector.state("run").open);
  await markInDoubt(context, attempts);
  let unsettled = [...attempts];
  const { open } = context.projector.state("run");
  // The network may show a message late, so the first read waits until `settleMs` after the message became doubtful. If
  // a 429 delayed the request, that moment is later than `attempted_at`, which was recorded before the request.
  const asked = unsettled.map(([id, attempt]) => Date.parse(open.get(id)?.doubted_at ?? attempt.attempted_at));
  // If the log's clock is ahead of this machine's, a recorded time may lie in the future. No message was sent later
  // than now, so the wait counts from now at the latest.
  let notBefore = Math.min(Math.max(0, ...asked), context.clock()) + context.settleMs;
  for (let read = 1; read <= ABSENT_READS && unsettled.length > 0; read++) {
    await waiting.pause("settling", notBefore);
    const absent: [string, OpenAttempt][] = [];
    for (const entry of unsettled) {
      if (waiting.signal.aborted) return "the lookup was interrupted";
      const looked = await settle(context, entry, { isLast: read === ABSENT_READS, waiting, metadata });
      if (looked === "absent") absent.push(entry);
      else if (looked !== "settled") left = looked.unreadable;
    }
    unsettled = absent;
    // The pause starts after the last conversation was read, so that two reads of the same one are at least that far
    // apart.
    notBefore = context.clock() + context.settleMs;
  }
  return left;
}

/** Appends that a message is in doubt, for an attempt that a dead process left without an outcome. */
async function markInDoubt(context: OutreachContext, attempts: ReadonlyMap<string, OpenAttempt>): Promise<void> {
  for (const [id, attempt] of attempts) {
    if (attempt.in_doubt) continue;
    const detail = "the process ended before the network's answer was recorded";
    const data = { ...attemptFields(id, attempt), detail };
    await recordOutcome(context, { type: "DirectMessageInDoubt", data }, SERVICE_METADATA);
  }
}

/** Reason why a conversation does not tell whether it holds a message. */
interface Unreadable {
  readonly unreadable: string;
}

interface Look {
  /** True in the last of the reads: if the message is missing in it too, it counts as not delivered. */
  readonly isLast: boolean;
  readonly waiting: Waiting;
  readonly metadata: EventMetadata;
}

/** Settles one attempt by reading its conversation. */
async function settle(
  context: OutreachContext,
  [id, attempt]: readonly [string, OpenAttempt],
  { isLast, waiting, metadata }: Look,
): Promise<"settled" | "absent" | Unreadable> {
  const found = await look(context, attempt, waiting);
  if (found !== undefined && "unreadable" in found) return found;
  if (found !== undefined) {
    const data = { ...attemptFields(id, attempt), message_id: found.id, settled_by: "lookup" } as const;
    await recordOutcome(context, { type: "DirectMessageSent", data }, metadata);
    return "settled";
  }
  if (!isLast) return "absent";
  const data = {
    ...attemptFields(id, attempt),
    reason: "not_delivered",
    detail: `absent from the conversation in ${ABSENT_READS} reads`,
    frees_quota: false,
    retry: false,
  } as const;
  await recordOutcome(context, { type: "DirectMessageFailed", data }, metadata);
  return "settled";
}

async function look(
  context: OutreachContext,
  attempt: OpenAttempt,
  waiting: Waiting,
): Promise<SentDm | Unreadable | undefined> {
  const own = context.projector.state("account").user;
  if (own === null) return { unreadable: "no account is linked" };
  const doubtful = (detail: string, unreadable = detail): Unreadable => {
    context.logger.warn("a message stays in doubt", { run_id: attempt.run_id, detail });
    return { unreadable };
  };
  // After an erasure the log knows neither the recipient nor the text, so there is nothing to look for.
  if (markOfErased(attempt.recipient.id) !== undefined) return doubtful("the recipient was erased");
  if ((attempt.account_id ?? own.id) !== own.id) return doubtful("another account sent it");
  if (context.clock() - Date.parse(attempt.attempted_at) > VISIBLE_FOR_MS) return doubtful("it is older than X shows");
  // Few attempts are enough, because the next lookup reads the conversation again.
  const retry = createRetry(context, waiting, QUICK_ATTEMPTS_MAX);
  try {
    for await (const { conversation, limit } of readConversation(context, retry, attempt.recipient.id)) {
      const unknown = withoutOthers(context, conversation, attempt.recipient, attempt.campaign);
      const found = findSent(unknown, attempt, own.id);
      if (found !== undefined) return found;
      if (hasUnknown(unknown, attempt, own.id))
        return doubtful("the conversation holds a message of ours with another text");
      if (reachesBack(conversation, attempt, limit)) return undefined;
    }
    return doubtful("too many messages follow it in the conversation");
  } catch (fault) {
    if (!(fault instanceof SocialError)) throw fault;
    // The event states this text in place of the network's message, which may name the recipient.
    return doubtful(fault.message, "X did not show the conversation");
  }
}

function attemptFields(attempt_id: string, { run_id, recipient, campaign }: OpenAttempt) {
  return { attempt_id, run_id, recipient, ...omitUndefined({ campaign }) };
}

/**
 * A message that is older than an attempt by at least this time, in ms, was surely sent before it. A smaller difference
 * proves nothing: after a wrong clock, the attempt's time may be a day ahead.
 */
const CLOCK_SKEW_MS = 48 * 60 * 60_000;

/**
 * Finds our message in a conversation by its text alone, not its time. If an earlier attempt that counts as not
 * delivered sent the same text after all, the recipient has the message all the same.
 */
export function findSent(conversation: readonly SentDm[], { text }: { readonly text: string }, ownId: string) {
  const wanted = comparable(text);
  return conversation.find((dm) => dm.senderId === ownId && comparable(dm.text) === wanted);
}

/**
 * Maximum time by which a message of ours may seem older than its attempt, in ms, because the network's clock differs.
 */
const SEND_SKEW_MS = 5 * 60_000;

/**
 * True if the conversation has any message of ours since the attempt. Called if none has the attempt's text: the
 * network may have changed the text, so the attempt then stays in doubt.
 */
function hasUnknown(conversation: readonly SentDm[], { attempted_at }: OpenAttempt, ownId: string): boolean {
  const earliest = Date.parse(attempted_at) - SEND_SKEW_MS;
  return conversation.some(({ senderId, createdAt }) => senderId === ownId && createdAt >= earliest);
}

/**
 * True if the newest `limit` messages reach back beyond the attempt. Otherwise later messages may hide ours, so a
 * missing message proves nothing.
 */
export function reachesBack(
  conversation: readonly SentDm[],
  { attempted_at }: { readonly attempted_at: string },
  limit: number,
) {
  const earliest = Date.parse(attempted_at) - CLOCK_SKEW_MS;
  return conversation.length < limit || conversation.some(({ createdAt }) => createdAt < earliest);
}

/**
 * Normalizes a message's text for comparison: networks trim messages, compose characters differently, and turn
 * `example.com/a` into the link `http://example.com/a`.
 */
function comparable(text: string): string {
  return text
    .normalize("NFC")
    .replaceAll(/https?:\/\//gi, "")
    .trim();
}

/**
 * Counts how many of these messages in doubt were settled by events from position `from` on, whichever instance
 * appended the events.
 */
export async function countSettled(store: LogStore, from: number, attempts: ReadonlyMap<string, OpenAttempt>) {
  const outcomes = { sent: 0, not_delivered: 0 };
  for await (const { type, data } of store.read({ from, types: ["DirectMessageSent", "DirectMessageFailed"] })) {
    if (!("attempt_id" in data) || !attempts.has(data.attempt_id)) continue;
    if (type === "DirectMessageSent") outcomes.sent++;
    else outcomes.not_delivered++;
  }
  return outcomes;
}
