import { NetworkFault } from "./network-fault.ts";
import type { SendDmResult } from "./network.ts";
import { isXId } from "./x-bodies.ts";
import { sendOutcome } from "./x-outcome.ts";
import type { XOptions } from "./x-read.ts";

/** Longer than a read: giving up early costs a message in doubt. It has to stay below IN_DOUBT_SETTLE_SECONDS. */
const SEND_TIMEOUT_MS = 15_000;

/** X's older reference says 10,000 characters; counted in UTF-16 units, which are never fewer. */
const DM_UNITS_MAX = 10_000;

/** One POST of one message. */
export async function sendDm(
  { apiUrl, safeFetch, clock }: XOptions,
  token: string,
  recipientId: string,
  text: string,
): Promise<SendDmResult> {
  const refusal = refuseBeforehand(recipientId, text);
  if (refusal !== undefined) return { outcome: "rejected", detail: refusal, rate: undefined };
  try {
    const answer = await safeFetch(`${apiUrl}/2/dm_conversations/with/${recipientId}/messages`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      // X refuses a body with any other field.
      body: JSON.stringify({ text }),
      timeoutMs: SEND_TIMEOUT_MS,
    });
    return sendOutcome(answer, clock());
  } catch (fault) {
    if (!(fault instanceof NetworkFault)) throw fault;
    const outcome = fault.certainlyNotSent ? "unreachable" : "in_doubt";
    return { outcome, detail: fault.message, rate: undefined };
  }
}

function refuseBeforehand(recipientId: string, text: string): string | undefined {
  if (!isXId(recipientId)) return "the recipient's id is not one of X";
  if (text === "") return "the text is empty";
  if (text.length > DM_UNITS_MAX) return `the text is longer than ${DM_UNITS_MAX} characters`;
  return undefined;
}
