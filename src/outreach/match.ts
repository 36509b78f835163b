import type { SentDm } from "../networks/network.ts";

/** Clocks of two computers differ; a message this much "older" than its attempt still counts as its. */
const CLOCK_SKEW_MS = 5 * 60_000;

/** The message of the conversation that is our attempt, if it is there. */
export function findSent(
  conversation: readonly SentDm[],
  attempt: { readonly text: string; readonly attempted_at: string },
  ownId: string,
): SentDm | undefined {
  const earliest = earliestOf(attempt);
  const wanted = comparable(attempt.text);
  return conversation.find((dm) => dm.senderId === ownId && dm.createdAt >= earliest && comparable(dm.text) === wanted);
}

/**
 * Whether a read of at most `limit` messages goes back to before the attempt. Only then is a message that it does not
 * show certainly absent: the person may have written a lot meanwhile.
 */
export function reachesBack(
  conversation: readonly SentDm[],
  attempt: { readonly attempted_at: string },
  limit: number,
) {
  return conversation.length < limit || conversation.some((dm) => dm.createdAt < earliestOf(attempt));
}

function earliestOf({ attempted_at }: { readonly attempted_at: string }): number {
  return Date.parse(attempted_at) - CLOCK_SKEW_MS;
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
