import { SocialError, type SocialUser } from "../networks/network.ts";
import { isAfterChange, QUOTA_WINDOW_MS } from "../../projections/quota.ts";
import { outreachState, quotaNow, type OutreachContext, type RetryPolicy, type RunContext } from "./context.ts";
import { dayIn } from "./quota-day.ts";

/**
 * Messages read of a conversation, one limit after the other. Each message costs money, and ours is among the newest.
 */
const CONVERSATION_READ_LIMITS = [5, 25, 100];

/**
 * Reads the newest messages of the conversation with the recipient `id`, more of them each time. Throws the network's
 * SocialError.
 */
export async function* readConversation({ credentials, network }: OutreachContext, retry: RetryPolicy, id: string) {
  for (const limit of CONVERSATION_READ_LIMITS) {
    const read = () => credentials.use((token) => network.conversation(token, id, limit));
    yield { conversation: await retry(read), limit };
  }
}

/** The network shows messages of the last 30 days. A message from before the restore is not visible after that. */
const VISIBLE_FOR_MS = 30 * 24 * 3_600_000;

/**
 * Returns when the log was last restored or imported, or a loss of it was accepted (ms since the epoch); undefined if
 * never. The log lacks messages sent between its last event before that and this time.
 */
function restoredAt({ projector }: Pick<OutreachContext, "projector">): number | undefined {
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
      const ours = conversation.find(({ senderId }) => senderId === own);
      if (ours !== undefined) return ours;
      if (conversation.length < limit) return "none";
    }
  } catch (fault) {
    if (!(fault instanceof SocialError) || fault.kind !== "rejected") throw fault;
    run.logger.warn("a conversation cannot be read, so its recipient is passed over", { detail: fault.message });
  }
  return "unknown";
}
