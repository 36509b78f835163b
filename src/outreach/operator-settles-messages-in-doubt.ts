import type { Recipient } from "../../events/outreach.ts";
import { isSameRecipient, type Run } from "../../projections/current-run.ts";
import { handle, type AppendDecision } from "../log/decide-and-append.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { STREAMS, type EventMetadata, type NewEvent, type StateContext } from "../log/event-log.ts";

/** An operator's answer to the question if messages in doubt arrived. */
export interface SettleMessages {
  /** Recipients of the messages that the answer is about. Undefined: all messages in doubt. */
  readonly recipients: readonly Recipient[] | undefined;
  /** Number of messages in doubt that the operator saw. If it has changed, nothing is recorded. */
  readonly expected: number | undefined;
  /** `arrived`: the messages count as sent. `left`: their outcome stays unknown, and no run looks them up again. */
  readonly as: "arrived" | "left";
  readonly why: string;
}

type SettleRefusal = { readonly missing: Recipient } | { readonly number: number };

/** Decides which events record an operator's answer about messages in doubt. */
export function decideSettle(
  { open }: Run,
  { recipients, expected, as, why }: SettleMessages,
): AppendDecision<SettleRefusal> {
  const inDoubt = [...open].filter(([, attempt]) => attempt.in_doubt);
  const missing = recipients?.find((one) => !inDoubt.some(([, attempt]) => isSameRecipient(attempt.recipient, one)));
  if (missing !== undefined) return { refusal: { missing } };
  const chosen = inDoubt.filter(
    ([, attempt]) => recipients === undefined || recipients.some((one) => isSameRecipient(attempt.recipient, one)),
  );
  if (expected !== undefined && expected !== chosen.length) return { refusal: { number: chosen.length } };
  return {
    events: chosen.map(([attempt_id, { run_id, recipient, campaign }]): NewEvent => {
      const data = { attempt_id, run_id, recipient, ...omitUndefined({ campaign }), why };
      return as === "arrived"
        ? { type: "DirectMessageSent", data: { ...data, settled_by: "operator" } }
        : { type: "DirectMessageLeft", data };
    }),
  };
}

/**
 * Records an operator's answer about messages in doubt. Returns how many messages it settled, or why it settled none.
 */
export async function settleMessagesInDoubt(context: StateContext, settling: SettleMessages, metadata: EventMetadata) {
  const decide = () => decideSettle(context.projector.state("run"), settling);
  const handled = await handle(context, STREAMS.outreach, decide, { metadata });
  return "refusal" in handled ? handled.refusal : { done: handled.events.length };
}
