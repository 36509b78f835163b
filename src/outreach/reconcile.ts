import { markOfErased } from "../../events/encryption.ts";
import type { OpenAttempt } from "../../projections/run.ts";
import { SERVICE_METADATA } from "../log/event-log.ts";
import { type SentDm, SocialError } from "../networks/network.ts";
import { readConversation } from "./after-restore.ts";
import type { OutreachContext, Waiting } from "./context.ts";
import { createRetry, QUICK_ATTEMPTS_MAX } from "./pacing-and-retries.ts";
import { recordOutcome } from "./send.ts";

/** X shows the messages of 30 days. This is less, so that no clock makes it more. */
const VISIBLE_FOR_MS = 28 * 24 * 3_600_000;

/** Reads in which a message must be absent, `settleMs` apart, before it counts as not delivered. */
const ABSENT_READS = 2;

/**
 * Settles messages in doubt of all runs by reading the conversations: found means sent, absent twice means not
 * delivered, unreadable stays in doubt. Never sends, and waits for a 429. Ends early if the signal aborts; the rest
 * stays in doubt.
 */
export async function settleOpen(context: OutreachContext, waiting: Waiting): Promise<void> {
  const attempts = new Map(context.projector.state("run").open);
  await markInDoubt(context, attempts);
  let unsettled = [...attempts];
  const { open } = context.projector.state("run");
  // Networks commit late, so nothing is read before `settleMs` have passed since the request was doubted. That may be
  // long after the intent, if a 429 was waited for.
  const asked = unsettled.map(([id, attempt]) => Date.parse(open.get(id)?.doubted_at ?? attempt.attempted_at));
  // The log's time may be ahead of the clock, but all messages in the log were sent before now.
  let notBefore = Math.min(Math.max(0, ...asked), context.clock()) + context.settleMs;
  for (let read = 1; read <= ABSENT_READS && unsettled.length > 0; read++) {
    await waiting.pause("settling", notBefore);
    const absent: [string, OpenAttempt][] = [];
    for (const entry of unsettled) {
      if (waiting.signal.aborted) return;
      const looked = await settle(context, entry, read === ABSENT_READS, waiting);
      if (looked === "absent") absent.push(entry);
    }
    unsettled = absent;
    // Counted from the last one, so that the two reads of each are that far apart.
    notBefore = context.clock() + context.settleMs;
  }
}

/** Marks an attempt as in doubt that a dead process left without any outcome. */
async function markInDoubt(context: OutreachContext, attempts: ReadonlyMap<string, OpenAttempt>): Promise<void> {
  for (const [id, attempt] of attempts) {
    if (attempt.in_doubt) continue;
    const detail = "the process ended before the network's answer was recorded";
    const data = { ...attemptFields(id, attempt), detail };
    await recordOutcome(context, { type: "DirectMessageInDoubt", data }, SERVICE_METADATA);
  }
}

/** If `isLast`, a message that is absent again was not delivered. */
async function settle(
  context: OutreachContext,
  [id, attempt]: readonly [string, OpenAttempt],
  isLast: boolean,
  waiting: Waiting,
): Promise<"settled" | "absent" | "unreadable"> {
  const found = await look(context, attempt, waiting);
  if (found === "unreadable") return "unreadable";
  if (found !== undefined) {
    const data = { ...attemptFields(id, attempt), message_id: found.id, settled_by: "lookup" } as const;
    await recordOutcome(context, { type: "DirectMessageSent", data }, SERVICE_METADATA);
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
  await recordOutcome(context, { type: "DirectMessageFailed", data }, SERVICE_METADATA);
  return "settled";
}

async function look(context: OutreachContext, attempt: OpenAttempt, waiting: Waiting) {
  const own = context.projector.state("account").user;
  if (own === null) return "unreadable";
  const doubtful = (detail: string): "unreadable" => {
    context.logger.warn("a message stays in doubt", { run_id: attempt.run_id, detail });
    return "unreadable";
  };
  // Neither the recipient to look up nor the text to look for is known any more.
  if (markOfErased(attempt.recipient.id) !== undefined) return doubtful("the recipient was erased");
  if ((attempt.account_id ?? own.id) !== own.id) return doubtful("another account sent it");
  if (context.clock() - Date.parse(attempt.attempted_at) > VISIBLE_FOR_MS) return doubtful("it is older than X shows");
  // A conversation that cannot be read now is read at the next trigger.
  const retry = createRetry(context, waiting, QUICK_ATTEMPTS_MAX);
  try {
    for await (const { conversation, limit } of readConversation(context, retry, attempt.recipient.id)) {
      const found = findSent(conversation, attempt, own.id);
      if (found !== undefined) return found;
      if (hasUnknown(conversation, attempt, own.id))
        return doubtful("the conversation holds a message of ours with another text");
      if (reachesBack(conversation, attempt, limit)) return undefined;
    }
    return doubtful("too much was written after it");
  } catch (fault) {
    if (!(fault instanceof SocialError)) throw fault;
    return doubtful(fault.message);
  }
}

function attemptFields(attempt_id: string, { run_id, recipient }: OpenAttempt) {
  return { attempt_id, run_id, recipient };
}

/**
 * An attempt's time is the log's, which never runs backwards: after a clock was a day ahead, it stays ahead for a day.
 * Only a message that is older than its attempt by this much is surely an earlier one.
 */
const CLOCK_SKEW_MS = 48 * 60 * 60_000;

/**
 * Finds the message of our attempt by its text. Its time does not matter: nothing sent before counts as sent, so the
 * same text is this attempt's or an earlier one's that was given up as not delivered. Either way they have it.
 */
export function findSent(conversation: readonly SentDm[], { text }: Pick<OpenAttempt, "text">, ownId: string) {
  const wanted = comparable(text);
  return conversation.find((dm) => dm.senderId === ownId && comparable(dm.text) === wanted);
}

/** How much older than its attempt a message of ours may seem and still have been sent after it. */
const SEND_SKEW_MS = 5 * 60_000;

/** True if we sent something since the attempt that does not have its text, which the network may have changed. */
function hasUnknown(conversation: readonly SentDm[], { attempted_at }: OpenAttempt, ownId: string): boolean {
  const earliest = Date.parse(attempted_at) - SEND_SKEW_MS;
  return conversation.some(({ senderId, createdAt }) => senderId === ownId && createdAt >= earliest);
}

/**
 * True if a read of at most `limit` messages goes back to before the attempt. Only then is a missing message certainly
 * absent, because the recipient may have written a lot meanwhile.
 */
export function reachesBack(
  conversation: readonly SentDm[],
  { attempted_at }: Pick<OpenAttempt, "attempted_at">,
  limit: number,
) {
  const earliest = Date.parse(attempted_at) - CLOCK_SKEW_MS;
  return conversation.length < limit || conversation.some(({ createdAt }) => createdAt < earliest);
}

/**
 * Removes differences that networks make: they trim messages, may compose characters differently, and turn a bare
 * `example.com/a` into the link `http://example.com/a`.
 */
function comparable(text: string): string {
  return text
    .normalize("NFC")
    .replaceAll(/https?:\/\//gi, "")
    .trim();
}
