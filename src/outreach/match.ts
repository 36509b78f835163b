import type { SentDm } from "../networks/network.ts";

/** Clocks of two computers differ; a message this much "older" than its attempt still counts as its. */
const CLOCK_SKEW_MS = 5 * 60_000;

/** The message of the conversation that is our attempt, if it is there. */
export function findSent(
  conversation: readonly SentDm[],
  attempt: { readonly text: string; readonly attempted_at: string },
  ownId: string,
): SentDm | undefined {
  const earliest = Date.parse(attempt.attempted_at) - CLOCK_SKEW_MS;
  const wanted = comparable(attempt.text);
  return conversation.find((dm) => dm.senderId === ownId && dm.createdAt >= earliest && comparable(dm.text) === wanted);
}

/** Networks trim messages and may compose characters differently. */
function comparable(text: string): string {
  return text.normalize("NFC").trim();
}
