import type { Recipient } from "../../events/outreach.ts";
import { SocialError, type SentDm, type SocialUser } from "../networks/network.ts";
import { outreachByCampaign } from "../../projections/contact-outreach-by-campaign.ts";
import { findPerson } from "../../projections/contact-identity.ts";
import { isAfterChange, QUOTA_WINDOW_MS } from "../../projections/quota.ts";
import { DEFAULT_CAMPAIGN } from "../../events/campaign.ts";
import { STREAMS } from "../log/event-log.ts";
import { handle } from "../log/decide-and-append.ts";
import { OPT_OUT_PAGE } from "../recipients/opt-out-and-untrack-by-page.ts";
import { createDecision } from "../recipients/suppress.ts";
import { splitIntoChunks } from "../vault/secret-database.ts";
import {
  outreachState,
  quotaNow,
  RUN_ATTEMPTS_MAX,
  type OutreachContext,
  type RetryPolicy,
  type RunContext,
} from "./run-context.ts";
import { dayIn } from "./quota-day.ts";

/**
 * Number of newest messages of a conversation to read: 5 at first, then 25, then 100, until our message is among them.
 * The network charges for each message read.
 */
const CONVERSATION_READ_LIMITS = [5, 25, 100];

/**
 * Yields the newest messages of the conversation with the recipient `id`: each step reads more of them than the step
 * before. Throws the network's SocialError.
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
 * Time for which the network shows a message, in ms: 30 days. If the restore is longer ago, a message sent before it
 * can no longer be found.
 */
const VISIBLE_FOR_MS = 30 * 24 * 3_600_000;

/**
 * Returns the time at which the log was last restored or imported, or an operator last accepted a loss of events (ms
 * since the epoch); undefined if never. Messages sent shortly before that time may be missing in the log.
 */
function restoredAt({ projector }: OutreachContext): number | undefined {
  const { last } = projector.state("restores");
  return last === null ? undefined : Date.parse(last);
}

/**
 * True if a restore forbids runs today: lost messages may have used up the day's quota, and for `settleMs` the network
 * may not show them yet. If the time zone changed since or is unknown, runs wait for 24 hours, not only until midnight.
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
 * Suppresses the recipients who opted out on their page and whose opt-out a restored log lacks. Only a hash of the
 * recipient's name is kept of such an opt-out.
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
 * Finds a message of ours to the recipient that a restored log lacks, even if an operator allowed a retry. `unknown`:
 * the network does not show the conversation, so the run sends nothing. Throws SocialErrors, except a rejected read.
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
