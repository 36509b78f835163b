import type { SentDm } from "../networks/network.ts";

/**
 * The time of an attempt is that of the log, which never runs backwards: after a clock that was a day ahead it stays
 * ahead for a day. So much older than its attempt a message has to be before it surely is an earlier one.
 */
const CLOCK_SKEW_MS = 48 * 60 * 60_000;

/**
 * The message of the conversation that is our attempt, if it is there. Its time is not looked at: the person was sent
 * nothing before that counts as sent, so the same text is this one's, or that of an earlier attempt which was given up
 * as not delivered; either way they have it.
 */
export function findSent(
  conversation: readonly SentDm[],
  { text }: { readonly text: string },
  ownId: string,
): SentDm | undefined {
  const wanted = comparable(text);
  return conversation.find((dm) => dm.senderId === ownId && comparable(dm.text) === wanted);
}

/** How much a message of ours may seem older than its attempt and still have been sent since. */
const SEND_SKEW_MS = 5 * 60_000;

/** Whether something of ours was sent since the attempt that is not its text: the network may have changed that. */
export function hasUnknown(
  conversation: readonly SentDm[],
  { attempted_at }: { readonly attempted_at: string },
  ownId: string,
): boolean {
  const earliest = Date.parse(attempted_at) - SEND_SKEW_MS;
  return conversation.some(({ senderId, createdAt }) => senderId === ownId && createdAt >= earliest);
}

/**
 * Whether a read of at most `limit` messages goes back to before the attempt. Only then is a message that it does not
 * show certainly absent: the person may have written a lot meanwhile.
 */
export function reachesBack(
  conversation: readonly SentDm[],
  { attempted_at }: { readonly attempted_at: string },
  limit: number,
): boolean {
  const earliest = Date.parse(attempted_at) - CLOCK_SKEW_MS;
  return conversation.length < limit || conversation.some(({ createdAt }) => createdAt < earliest);
}

/**
 * Networks trim messages, may compose characters differently, and make a link of a bare `example.com/a`, which comes
 * back as `http://example.com/a`.
 */
function comparable(text: string): string {
  return text
    .normalize("NFC")
    .replaceAll(/https?:\/\//gi, "")
    .trim();
}
