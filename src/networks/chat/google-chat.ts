import { Type } from "@sinclair/typebox";
import { type AnswerRules, parseAnswer } from "../classify-answer.ts";
import type { Channel } from "../network.ts";
import { excerpt, truncate, withLookAlikes } from "../sanitize-and-truncate-text.ts";
import type { NetworkAnswer } from "../safe-fetch.ts";
import { createWebhookChannel, type WebhookOptions } from "./webhook.ts";

export function createGoogleChatChannel(options: WebhookOptions): Channel {
  return createWebhookChannel(options, {
    network: "google_chat",
    answers: GOOGLE_CHAT_ANSWERS,
    headers: { "content-type": "application/json; charset=utf-8" },
    formatMessage: (text) => JSON.stringify({ text: googleChatText(text) }),
    // An empty request posts nothing: Google Chat complains about its missing text if the webhook works, or else about
    // the webhook's address.
    probe: (url) => ({ url, method: "POST", body: "{}" }),
    isAlive: (answer) => answer.status === 400 && /empty/i.test(errorIn(answer)?.message ?? ""),
    alive: "the webhook is alive",
  });
}

/**
 * Maximum number of UTF-16 units of a text. A Google Chat message may have 32,000 bytes, and a unit takes three at
 * most, in UTF-8 as in JSON; https://developers.google.com/workspace/chat/api/reference/rest/v1/spaces.messages/create
 */
const TEXT_UNITS_MAX = 10_000;

/**
 * Returns text from outside that Google Chat shows as it was written. Angle brackets, which Google turns into mentions,
 * links and emoji, become look-alikes if they could be a pair;
 * https://developers.google.com/workspace/chat/format-messages
 */
export function googleChatText(text: string): string {
  const short = truncate(text, TEXT_UNITS_MAX);
  const opens = short.indexOf("<");
  const paired = opens !== -1 && short.lastIndexOf(">") > opens;
  const flat = paired ? short.replace(/</g, "‹").replace(/>/g, "›") : short;
  return withLookAlikes(flat);
}

/** Schema of Google Chat's answer to a post: the name is all that a webhook learns of its message. */
const CREATED = Type.Object({ name: Type.String({ pattern: "^spaces/[^/]+/messages/[^/]+$", maxLength: 200 }) });

const REFUSED = Type.Object({
  error: Type.Object({
    status: Type.String({ pattern: "^[A-Z_]{1,40}$" }),
    message: Type.String(),
    details: Type.Optional(Type.Array(Type.Object({ reason: Type.Optional(Type.String()) }))),
  }),
});

/**
 * Statuses by which Google Chat refuses every message of the channel: a wrong key or token, a removed webhook, or a
 * space that is gone.
 */
const CHANNEL_STATUSES: ReadonlySet<number> = new Set([401, 403, 404, 410]);

/** Matches the reasons in a 400 of Google Chat that blame the address's API key rather than the message. */
const KEY_REASON = /^API_KEY_/;

/**
 * How Google Chat's answers are read. A webhook is not known to recognise a repeat. Google promises no `Retry-After`,
 * but a proxy may add it. https://developers.google.com/workspace/chat/limits
 */
export const GOOGLE_CHAT_ANSWERS: AnswerRules = {
  accepted({ status, text }) {
    const created = status === 200 ? parseAnswer(CREATED, text) : undefined;
    return created === undefined ? undefined : { networkId: created.name };
  },
  describe(answer) {
    const error = errorIn(answer);
    return `Google Chat answered ${answer.status}${error === undefined ? "" : ` ${error.status}: ${excerpt(error.message)}`}`;
  },
  refusesChannel(answer) {
    const details = errorIn(answer)?.details ?? [];
    return CHANNEL_STATUSES.has(answer.status) || details.some(({ reason }) => KEY_REASON.test(reason ?? ""));
  },
};

function errorIn({ text }: NetworkAnswer) {
  return parseAnswer(REFUSED, text)?.error;
}
