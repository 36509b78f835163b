import { Type, type Static } from "@sinclair/typebox";
import { excerpt } from "./excerpt.ts";
import { readJson } from "./json-answer.ts";
import type { DispatchResult } from "./network.ts";
import { retryAfterOf } from "./retry-after.ts";
import type { NetworkAnswer } from "./safe-fetch.ts";

const ACCEPTED = Type.Object({
  sentMessages: Type.Array(Type.Object({ id: Type.String({ maxLength: 100 }) }), { minItems: 1 }),
});

const REFUSED = Type.Object({
  message: Type.String(),
  details: Type.Optional(Type.Array(Type.Object({ property: Type.Optional(Type.String()) }))),
});

/** Token refused; no right to push; no such method at the configured address. */
const CHANNEL_STATUSES: ReadonlySet<number> = new Set([401, 403, 404]);

/** A 429 that holds until the month, or the plan, changes. */
const QUOTA_USED_UP = /monthly limit/i;

/** What LINE says of a recipient whom it does not know. */
const RECIPIENT_UNKNOWN = /failed to send messages/i;

/**
 * What an answer to a push means. `deduplicates`: its retry key stays the same when it is sent again, and then a 409
 * tells that it was accepted before. https://developers.line.biz/en/docs/messaging-api/retrying-api-request/
 */
export function classifyLineAnswer(
  answer: NetworkAnswer,
  { deduplicates }: { readonly deduplicates: boolean },
): DispatchResult {
  const { status, text, headers } = answer;
  const accepted = status === 200 || status === 409 ? readJson(ACCEPTED, text) : undefined;
  if (accepted !== undefined || status === 409) {
    const id = accepted?.sentMessages[0]?.id;
    return { outcome: "delivered", status, ...(id === undefined ? {} : { networkId: id }) };
  }
  const detail = describeLine(answer);
  if (status === 429 && !QUOTA_USED_UP.test(text)) {
    const pause = retryAfterOf(headers);
    return { outcome: "retryable", status, detail, ...(pause === undefined ? {} : { retryAfterMs: pause }) };
  }
  if (status < 400 || status === 408 || status >= 500) {
    if (!deduplicates) return { outcome: "in_doubt", status, detail };
    return { outcome: "retryable", status, detail, mayHaveArrived: true };
  }
  const refusal = readJson(REFUSED, text);
  const channel = CHANNEL_STATUSES.has(status) || status === 429 || isAboutRecipient(refusal);
  return { outcome: "refused", status, detail, channel };
}

/** The status with LINE's own words, where there are any. */
export function describeLine({ status, text }: NetworkAnswer): string {
  const message = readJson(REFUSED, text)?.message ?? "";
  return `LINE answered ${status}${message === "" ? "" : ` ${excerpt(message)}`}`;
}

/** Whether a 400 is about the recipient, who is the same for each message of the channel. */
function isAboutRecipient(refusal: Static<typeof REFUSED> | undefined): boolean {
  if (refusal === undefined) return false;
  const { message, details = [] } = refusal;
  return RECIPIENT_UNKNOWN.test(message) || /'to'/.test(message) || details.some(({ property }) => property === "to");
}
