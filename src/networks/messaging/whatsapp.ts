import { Type } from "@sinclair/typebox";
import { secret, type Secret } from "../../platform/secret.ts";
import { checked, toDispatchResult, type AnswerRules, parseRetryAfter, parseAnswer } from "../classify-answer.ts";
import * as graph from "../classify-graph-api-answer.ts";
import type { Channel } from "../network.ts";
import type { NetworkAnswer, SafeFetch } from "../safe-fetch.ts";
import { wordDispatch, truncate, withLookAlikes } from "../sanitize-and-truncate-text.ts";

/**
 * Creates the messaging channel for the WhatsApp Cloud API, with `to` as its only recipient. Free text is refused 24
 * hours after the recipient's last message. That suspends the channel: they must write again, and an operator must
 * resume it.
 */
export function createWhatsappChannel(options: {
  /** WhatsApp's id of the sending number, which is not the number itself. */
  readonly phoneNumberId: string;
  readonly accessToken: Secret;
  /** The recipient's telephone number with its country code, or their business-scoped id. */
  readonly to: string;
  readonly baseUrl: string;
  readonly safeFetch: SafeFetch;
}): Channel {
  const { phoneNumberId, accessToken, to, safeFetch } = options;
  const numberUrl = `${options.baseUrl}/${graph.API_VERSION}/${encodeURIComponent(phoneNumberId)}`;
  const headers = () => ({ authorization: `Bearer ${accessToken.reveal()}` });
  // WhatsApp would take an id in `to` for a number, answer 200, and drop the message.
  const recipient = /^[A-Z]/.test(to) ? { recipient: to } : { to };
  return {
    name: "messaging",
    network: "whatsapp",
    // The credential includes the number and the recipient, because a wrong one suspends the channel, as a wrong token
    // does, until it is changed.
    credential: secret(`${phoneNumberId}\n${to}\n${accessToken.reveal()}`),
    async send(dispatch, { timeoutMs }) {
      const text = { preview_url: false, body: whatsappText(wordDispatch(dispatch)) };
      const request = safeFetch(`${numberUrl}/messages`, {
        method: "POST",
        headers: { ...headers(), "content-type": "application/json" },
        body: JSON.stringify({
          messaging_product: "whatsapp",
          recipient_type: "individual",
          ...recipient,
          type: "text",
          text,
          // WhatsApp returns this id with each status of the message. A retry has its own, so that a late status of the
          // first message is not taken for the retry's.
          biz_opaque_callback_data: dispatch.retryId ?? dispatch.id,
        }),
        timeoutMs,
      });
      return toDispatchResult(request, WHATSAPP_ANSWERS);
    },
    check: (timeoutMs) =>
      checked(async () => {
        const answer = await safeFetch(`${numberUrl}?fields=id`, { method: "GET", headers: headers(), timeoutMs });
        if (answer.status === 200) return { ok: true, detail: "the phone number answers to the access token" };
        const detail = WHATSAPP_ANSWERS.describe(answer);
        return { ok: false, detail: `${detail}: check WHATSAPP_PHONE_NUMBER_ID and WHATSAPP_ACCESS_TOKEN` };
      }),
  };
}

/** Maximum length of a WhatsApp text, counted in UTF-16 units, which are never fewer than characters. */
const TEXT_UNITS_MAX = 4_096;

/** Returns text from outside as a WhatsApp body that shows as it was written. */
export function whatsappText(text: string): string {
  return withLookAlikes(truncate(text, TEXT_UNITS_MAX));
}

const ACCEPTED = Type.Object({ messages: Type.Array(Type.Object({ id: Type.String() }), { minItems: 1 }) });

/**
 * Pauses after WhatsApp's rate limits, by error code: of the number (80 messages a second), and of number and recipient
 * (one in 6 seconds); https://developers.facebook.com/documentation/business-messaging/whatsapp/throughput
 */
const PAUSES_MS: ReadonlyMap<number, number> = new Map([
  [130_429, 1_000],
  [131_056, 6_000],
]);

/**
 * Error codes of faults of the WhatsApp account, the number or the recipient. Each message of the channel would meet
 * them, as it has one recipient.
 * https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes
 */
export const CHANNEL_FAULTS: ReadonlyMap<number, string> = new Map([
  [0, "the access token is refused"],
  [33, "the phone number is gone"],
  [130_497, "the account may not write to the recipient's country"],
  [131_005, "the access token lacks a permission"],
  [131_021, "the recipient is the sender"],
  [131_026, "the recipient cannot be reached on WhatsApp"],
  [131_030, "the recipient is not on the test number's list"],
  [131_031, "the account is locked"],
  [131_042, "the account's payment is not in order"],
  [131_045, "the phone number is not registered"],
  [131_047, "more than 24 hours since the recipient last wrote: it takes a message from them first"],
  [131_062, "the recipient's business-scoped id cannot get such a message: set their number"],
  [131_048, "the number is restricted, because too many messages were reported as spam"],
  [133_010, "the phone number is not registered"],
]);

/**
 * How WhatsApp's answers are read. Meta recognises no repeat: only a rate limit and a refusal with a code prove that
 * nothing was sent. The message's id is not kept, because it holds the recipient's telephone number.
 */
export const WHATSAPP_ANSWERS: AnswerRules = {
  accepted({ status, text, headers }) {
    return status === 200 && parseAnswer(ACCEPTED, text) !== undefined
      ? { pauseMs: graph.usagePauseMs(headers) }
      : undefined;
  },
  describe(answer) {
    const words = CHANNEL_FAULTS.get(parseCode(answer));
    return graph.describe("WhatsApp", answer) + (words === undefined ? "" : `: ${words}`);
  },
  isRateLimit: (answer) => PAUSES_MS.has(parseCode(answer)) || graph.isRateLimit(answer),
  // An error code of the channel is a clear refusal, whatever the status of the answer.
  isUncertain: (answer) => !isChannelFault(answer) && (answer.status < 400 || graph.isPassing(answer)),
  refusesChannel: isChannelFault,
  retryAfterMs(answer) {
    const documented = PAUSES_MS.get(parseCode(answer));
    return documented === undefined
      ? graph.rateLimitPauseMs(answer.headers)
      : (parseRetryAfter(answer.headers) ?? documented);
  },
};

function isChannelFault(answer: NetworkAnswer): boolean {
  return CHANNEL_FAULTS.has(parseCode(answer)) || graph.isCredentialFault(answer);
}

function parseCode(answer: NetworkAnswer): number {
  return graph.parseError(answer)?.code ?? -1;
}
