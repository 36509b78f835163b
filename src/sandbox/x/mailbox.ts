import type { DirectMessage, XState } from "./state.ts";

/** X shows messages of the last 30 days. */
const SHOWN_MS = 30 * 24 * 3_600_000;

const FIRST_ID = 1_800_000_000_000_000_000n;

/** Puts a message into the conversation; X does not de-duplicate. */
export function deliver(state: XState, sender_id: string, recipient_id: string, text: string): DirectMessage {
  const now = state.clock.now();
  const message: DirectMessage = {
    id: String(FIRST_ID + BigInt(state.messages.total)),
    sender_id,
    recipient_id,
    text,
    created_at: now,
    visible_at: now + state.limits.lateCommitMs,
  };
  state.messages.add(message);
  return message;
}

/** What `own` can see, newest first: of one conversation, or of all. */
export function visibleTo({ messages, clock }: XState, own: string, participant?: string): DirectMessage[] {
  const now = clock.now();
  const isShown = ({ created_at, visible_at }: DirectMessage): boolean =>
    visible_at <= now && now - created_at < SHOWN_MS;
  return messages.kept.filter((message) => isShown(message) && isBetween(message, own, participant)).toReversed();
}

function isBetween({ sender_id, recipient_id }: DirectMessage, own: string, participant?: string): boolean {
  if (sender_id !== own && recipient_id !== own) return false;
  return participant === undefined || sender_id === participant || recipient_id === participant;
}

/** The smaller id first. */
export function conversationOf({ sender_id, recipient_id }: DirectMessage): string {
  const [low, high] = BigInt(sender_id) < BigInt(recipient_id) ? [sender_id, recipient_id] : [recipient_id, sender_id];
  return `${low}-${high}`;
}
