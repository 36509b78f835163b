import { Type } from "@sinclair/typebox";
import { secret, type Secret } from "../../platform/secret.ts";
import { checked, toDispatchResult, type AnswerRules, parseAnswer } from "../classify-answer.ts";
import type { Channel } from "../network.ts";
import type { NetworkAnswer, SafeFetch } from "../safe-fetch.ts";
import { wordDispatch, excerpt, truncate } from "../sanitize-and-truncate-text.ts";

/**
 * Maximum number of UTF-16 units of a LINE text, which LINE counts too:
 * https://developers.line.biz/en/docs/messaging-api/text-character-count/
 */
const TEXT_UNITS_MAX = 5_000;

/**
 * Time in ms for which LINE recognises a repeat. Its retry keys are valid for 24 hours; this is an hour less, because
 * clocks differ and requests take time.
 */
const RECOGNISES_MS = 23 * 3_600_000;

/**
 * Creates the messaging channel for LINE's push messages. The dispatch's id is the retry key, so LINE accepts each
 * message once within 24 hours. A digest gets a new id for each attempt, so after an unclear answer its delivery stays
 * unknown.
 */
export function createLineChannel(options: {
  readonly accessToken: Secret;
  /** Id of the LINE user, group or room that gets the messages. */
  readonly to: string;
  readonly baseUrl: string;
  readonly safeFetch: SafeFetch;
}): Channel {
  const { accessToken, to, baseUrl, safeFetch } = options;
  const headers = () => ({ authorization: `Bearer ${accessToken.reveal()}` });
  return {
    name: "messaging",
    network: "line",
    // A suspension ends when the credential changes. The credential includes the recipient, because a wrong recipient
    // suspends the channel as a wrong token does.
    credential: secret(`${to}\n${accessToken.reveal()}`),
    recognisesMs: RECOGNISES_MS,
    async send(dispatch, { timeoutMs }) {
      const text = truncate(wordDispatch(dispatch), TEXT_UNITS_MAX);
      const request = safeFetch(`${baseUrl}/v2/bot/message/push`, {
        method: "POST",
        headers: { ...headers(), "content-type": "application/json", "x-line-retry-key": dispatch.id },
        body: JSON.stringify({ to, messages: [{ type: "text", text }] }),
        timeoutMs,
      });
      return toDispatchResult(request, LINE_ANSWERS, dispatch.kind !== "digest");
    },
    check: (timeoutMs) =>
      checked(async () => {
        const answer = await safeFetch(`${baseUrl}/v2/bot/info`, { method: "GET", headers: headers(), timeoutMs });
        if (answer.status === 200) return { ok: true, detail: "the account answers to the access token" };
        return { ok: false, detail: `${LINE_ANSWERS.describe(answer)}: check LINE_CHANNEL_ACCESS_TOKEN` };
      }),
  };
}

const ACCEPTED = Type.Object({
  sentMessages: Type.Array(Type.Object({ id: Type.String({ maxLength: 100 }) }), { minItems: 1 }),
});

const REFUSED = Type.Object({
  message: Type.String(),
  details: Type.Optional(Type.Array(Type.Object({ property: Type.Optional(Type.String()) }))),
});

/**
 * Statuses by which LINE refuses every message of the channel: a wrong token, a missing right to push, an unknown
 * method at the configured address, and a month's messages that are used up.
 */
const CHANNEL_STATUSES: ReadonlySet<number> = new Set([401, 403, 404, 429]);

/** Matches LINE's words in a 429 that lasts until the month, or the plan, changes. */
const QUOTA_USED_UP = /monthly limit/i;

/** Matches LINE's words in a refusal because it does not know the recipient, or not by this id. */
const RECIPIENT_AT_FAULT = /failed to send messages|'to'/i;

/**
 * Rules by which LINE's answers are read. A 409 means that LINE accepted a message with the same retry key before, so
 * the message counts as delivered. https://developers.line.biz/en/docs/messaging-api/retrying-api-request/
 */
export const LINE_ANSWERS: AnswerRules = {
  accepted({ status, text }) {
    const id = parseAnswer(ACCEPTED, text)?.sentMessages[0]?.id;
    return status === 409 || (status === 200 && id !== undefined) ? { networkId: id } : undefined;
  },
  describe: (answer) => `LINE answered ${answer.status} ${excerpt(refusalIn(answer).message)}`.trimEnd(),
  isRateLimit: ({ status, text }) => status === 429 && !QUOTA_USED_UP.test(text),
  refusesChannel(answer) {
    // The channel sends all messages to one recipient. If LINE refuses that recipient, no message can arrive, so the
    // whole channel counts as refused.
    const { message, details = [] } = refusalIn(answer);
    const isAboutRecipient = RECIPIENT_AT_FAULT.test(message) || details.some(({ property }) => property === "to");
    return CHANNEL_STATUSES.has(answer.status) || isAboutRecipient;
  },
};

function refusalIn({ text }: NetworkAnswer) {
  return parseAnswer(REFUSED, text) ?? { message: "" };
}
