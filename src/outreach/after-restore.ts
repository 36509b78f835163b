import type { Recipient } from "../../events/outreach.ts";
import { SocialError, type SentDm, type SocialUser } from "../networks/network.ts";
import { outreachByCampaign } from "../../projections/contact-campaigns.ts";
import { findPerson } from "../../projections/contact-identity.ts";
import { isAfterChange, QUOTA_WINDOW_MS } from "../../projections/quota.ts";
import { DEFAULT_CAMPAIGN } from "../../events/campaign.ts";
import { STREAMS } from "../log/event-log.ts";
import { handle } from "../log/decide-and-append.ts";
import { OPT_OUT_PAGE } from "../recipients/opt-out-page.ts";
import { createDecision } from "../recipients/suppress.ts";
import { splitIntoChunks } from "../vault/secret-database.ts";
import {
  outreachState,
  quotaNow,
  RUN_ATTEMPTS_MAX,
  type OutreachContext,
  type RetryPolicy,
  type RunContext,
} from "./context.ts";
import { dayIn } from "./quota-day.ts";

/**
 * Numbers of newest messages to read of a conversation: the next number is tried if our message is not among the fewer.
 * Each message read costs money.
 */
const CONVERSATION_READ_LIMITS = [5, 25, 100];

/**
 * Yields the newest messages of the conversation with the recipient `id`: first a few, then more in each further read.
 * Throws the network's SocialError.
 */
export async function* readConversation({ credentials, network }: OutreachContext, retry: RetryPolicy, id: string) {
  for (const limit of CONVERSATION_READ_LIMITS) {
    const read = () => credentials.use((token) => network.conversation(token, id, limit));
    yield { conversation: await retry(read), limit };
  }
}

/** Returns a conversation without the messages that the log holds as those of other campaigns. */
export function withoutOthers(
  { projector }: OutreachContext,
  conversation: readonly SentDm[],
  recipient: Recipient,
  campaign = DEFAULT_CAMPAIGN,
): readonly SentDm[] {
  const contact = findPerson(projector.state("contacts"), recipient);
  if (contact === undefined) return conversation;
  const others = outreachByCampaign(contact).filter(([name]) => name !== campaign);
  return conversation.filter(({ id }) => !others.some(([, { message_id }]) => message_id === id));
}

/**
 * How long the network shows a message, in ms: 30 days. A message from before the restore is not visible after that.
 */
const VISIBLE_FOR_MS = 30 * 24 * 3_600_000;

/**
 * Returns when the log was last restored or imported, or an operator accepted a loss of events (ms since the epoch);
 * undefined if never. Messages sent between the last event before that and this time are missing in the log.
 */
function restoredAt({ projector }: OutreachContext): number | undefined {
  const { last } = projector.state("restores");
  return last === null ? undefined : Date.parse(last);
}

/**
 * True while a restore makes the used quota unknown: on the same day, or within 24 hours if the time zone was changed
 * or the log names none. The network may not show its newest messages yet either.
 */
export function wasRestoredToday(context: OutreachContext): boolean {
  const restored = restoredAt(context);
  if (restored === undefined) return false;
  const now = quotaNow(context);
  const sinceMs = now.ms - restored;
  if (dayIn(context.timezone, restored) === now.day || sinceMs < context.settleMs) return true;
  const { quota } = outreachState(context);
  return (quota.timezone === null || isAfterChange(quota, now)) && sinceMs < QUOTA_WINDOW_MS;
}

/**
 * Suppresses the recipients who opted out on their page and whose opt-out a restored log lacks. They are known by a hash
 * alone.
 */
export async function recordKeptOptOuts(run: RunContext): Promise<void> {
  const { metadata, lease, rules, projector } = run;
  const { hashes } = projector.state("contacts");
  const lost = (await run.keptOptOuts()).filter((hash) => !hashes.has(hash));
  for (const some of splitIntoChunks(lost.map((hash) => ({ hash, reason: OPT_OUT_PAGE }) as const))) {
    const decide = () => ({ events: createDecision(rules.hashes)(projector.state("contacts"), some) });
    await handle(run, STREAMS.outreach, decide, { metadata, lease, attempts: RUN_ATTEMPTS_MAX });
  }
}

/**
 * Finds a message of ours that a restore lost, even if an operator allowed a retry: the log may lack its outcome.
 * `unknown`: the conversation is unreadable, so no second message is sent. Throws SocialErrors, except about this
 * recipient.
 */
export async function findOurs(run: RunContext, retry: RetryPolicy, user: SocialUser) {
  const restored = restoredAt(run);
  if (restored === undefined || run.clock() - restored > VISIBLE_FOR_MS) return "none";
  const own = outreachState(run).account.user?.id;
  try {
    for await (const { conversation, limit } of readConversation(run, retry, user.id)) {
      const unknown = withoutOthers(run, conversation, user, run.rules.campaign);
      const ours = unknown.find(({ senderId }) => senderId === own);
      if (ours !== undefined) return ours;
      if (conversation.length < limit) return "none";
    }
  } catch (fault) {
    if (!(fault instanceof SocialError) || fault.kind !== "rejected") throw fault;
    run.logger.warn("a conversation cannot be read, so this run sends its recipient nothing", {
      detail: fault.message,
    });
  }
  return "unknown";
}
