import type { OpenAttempt } from "../../projections/run.ts";
import { OWN_CAUSE } from "../journal.ts";
import { SocialError, type SentDm } from "../networks/network.ts";
import type { OutreachContext } from "./context.ts";
import { findSent, reachesBack } from "./match.ts";
import { recordOutcome } from "./outcome.ts";

/** Messages read of a conversation: ours is among the newest, and each one read costs money. More only where needed. */
const LOOKUP_MESSAGES = [10, 100];

/** Times a message must be absent, `settleMs` apart, before it counts as not delivered. */
const ABSENT_READS = 2;

/**
 * Settles attempts whose outcome is unknown by reading the conversations: found is sent, absent twice is not
 * delivered; what cannot be read stays in doubt. Never sends. Networks commit late, so nothing is read before
 * `settleMs` have passed since the attempt. Ends early, leaving the rest in doubt, when the signal aborts.
 */
export async function reconcile(
  context: OutreachContext,
  attempts: ReadonlyMap<string, OpenAttempt>,
  signal: AbortSignal,
): Promise<void> {
  await markInDoubt(context, attempts);
  let unsettled = [...attempts];
  let notBefore = Math.max(0, ...unsettled.map(([, attempt]) => Date.parse(attempt.attempted_at))) + context.settleMs;
  for (let read = 1; read <= ABSENT_READS && unsettled.length > 0; read++) {
    await context.sleep(notBefore - context.clock(), signal);
    if (signal.aborted) return;
    const absent: [string, OpenAttempt][] = [];
    for (const [id, attempt] of unsettled) {
      if ((await settle(context, id, attempt, read === ABSENT_READS)) === "absent") absent.push([id, attempt]);
    }
    unsettled = absent;
    // Counted from the last of them, so that the two reads of each are that far apart.
    notBefore = context.clock() + context.settleMs;
  }
}

/** An attempt that a dead process left without any outcome is in doubt from now on. */
async function markInDoubt(context: OutreachContext, attempts: ReadonlyMap<string, OpenAttempt>): Promise<void> {
  for (const [id, attempt] of attempts) {
    if (attempt.in_doubt) continue;
    const detail = "the process ended before the network's answer was recorded";
    await recordOutcome(
      context,
      {
        type: "DirectMessageInDoubt",
        data: { ...outcomeOf(id, attempt), detail },
      },
      OWN_CAUSE,
    );
  }
}

async function settle(
  context: OutreachContext,
  id: string,
  attempt: OpenAttempt,
  last: boolean,
): Promise<"settled" | "absent" | "unreadable"> {
  const found = await look(context, attempt);
  if (found === "unreadable") return "unreadable";
  if (found !== undefined) {
    const data = {
      ...outcomeOf(id, attempt),
      message_id: found.id,
      settled_by: "lookup",
    } as const;
    await recordOutcome(context, { type: "DirectMessageSent", data }, OWN_CAUSE);
    return "settled";
  }
  if (!last) return "absent";
  const data = {
    ...outcomeOf(id, attempt),
    reason: "not_delivered",
    detail: `absent from the conversation in ${ABSENT_READS} reads`,
    frees_quota: false,
    retry: false,
  } as const;
  await recordOutcome(context, { type: "DirectMessageFailed", data }, OWN_CAUSE);
  return "settled";
}

async function look(context: OutreachContext, attempt: OpenAttempt): Promise<SentDm | undefined | "unreadable"> {
  const own = context.projector.state("account").user;
  if (own === null) return "unreadable";
  try {
    for (const limit of LOOKUP_MESSAGES) {
      const conversation = await context.credentials.use((token) =>
        context.network.conversation(token, attempt.recipient.id, limit),
      );
      const found = findSent(conversation, attempt, own.id);
      if (found !== undefined || reachesBack(conversation, attempt, limit)) return found;
    }
    context.log.warn("a message stays in doubt: too much was written after it", { run_id: attempt.run_id });
    return "unreadable";
  } catch (fault) {
    if (!(fault instanceof SocialError)) throw fault;
    context.log.warn("a message stays in doubt: its conversation cannot be read", { detail: fault.message });
    return "unreadable";
  }
}

function outcomeOf(attempt_id: string, { run_id, recipient }: OpenAttempt) {
  return { attempt_id, run_id, recipient };
}
