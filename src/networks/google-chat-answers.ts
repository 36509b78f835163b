import { Type } from "@sinclair/typebox";
import { excerpt } from "./excerpt.ts";
import { readJson } from "./json-answer.ts";
import type { DispatchResult } from "./network.ts";
import { retryAfterOf } from "./retry-after.ts";
import type { NetworkAnswer } from "./safe-fetch.ts";

/** Of a webhook's answer only the name is told besides what was sent. */
const CREATED = Type.Object({ name: Type.String({ pattern: "^spaces/[^/]+/messages/[^/]+$", maxLength: 200 }) });

const REFUSED = Type.Object({
  error: Type.Object({
    status: Type.String({ pattern: "^[A-Z_]{1,40}$" }),
    message: Type.String(),
    details: Type.Optional(Type.Array(Type.Object({ reason: Type.Optional(Type.String()) }))),
  }),
});

/** Key or token refused, webhook removed, space gone. */
const CHANNEL_STATUSES: ReadonlySet<number> = new Set([401, 403, 404, 410]);

/** With a 400: the address's key, rather than the message. */
const KEY_REASON = /^API_KEY_/;

/**
 * What an answer to a message means. A webhook is not known to de-duplicate: only a 429 and a plain refusal prove that
 * nothing was posted. https://developers.google.com/workspace/chat/limits
 */
export function classifyGoogleChatAnswer(answer: NetworkAnswer): DispatchResult {
  const { status, text } = answer;
  const created = status === 200 ? readJson(CREATED, text) : undefined;
  if (created !== undefined) return { outcome: "delivered", status, networkId: created.name };
  const detail = describeGoogleChat(answer);
  if (status === 429) {
    // Google promises none; a proxy may add it.
    const pause = retryAfterOf(answer.headers);
    return { outcome: "retryable", status, detail, ...(pause === undefined ? {} : { retryAfterMs: pause }) };
  }
  // 408 leaves open how much the server had understood.
  if (status < 400 || status === 408 || status >= 500) return { outcome: "in_doubt", status, detail };
  const details = readJson(REFUSED, text)?.error.details ?? [];
  const channel = CHANNEL_STATUSES.has(status) || details.some(({ reason }) => KEY_REASON.test(reason ?? ""));
  return { outcome: "refused", status, detail, channel };
}

/** Whether a message without content was refused for that, which takes a living webhook. */
export function missesContent({ status, text }: NetworkAnswer): boolean {
  return status === 400 && /empty/i.test(readJson(REFUSED, text)?.error.message ?? "");
}

/** The status with Google's own words, where there are any. */
export function describeGoogleChat({ status, text }: NetworkAnswer): string {
  const error = readJson(REFUSED, text)?.error;
  return `Google Chat answered ${status}${error === undefined ? "" : ` ${error.status}: ${excerpt(error.message)}`}`;
}
