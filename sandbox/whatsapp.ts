import { http, HttpResponse } from "msw";
import type { SandboxClock } from "./clock.ts";
import { graphError, graphRefusal } from "./refuse-like-meta-graph-api.ts";
import { renderWhatsapp, type ShownText } from "./render-chat-markup.ts";
import { ORIGINS, type Refusals } from "./network-origins-and-refusals.ts";
import { createBucket, takeTurn } from "./rate-limits.ts";
import { createRecorded } from "./record-received.ts";
import { bearerOf, jsonOf, membersOf, withRetryAfter } from "./read-request.ts";
import { postStatus } from "./whatsapp-statuses.ts";

/**
 * Number of messages that a business number may send per second:
 * https://developers.facebook.com/documentation/business-messaging/whatsapp/throughput
 */
const DEFAULT_LIMIT = 80;
const PERIOD_MS = 1_000;

/**
 * Maximum number of messages to one person in a burst. On average WhatsApp allows one per 6 seconds, so a longer wait
 * follows a burst.
 */
const PAIR_BURST = 45;
const PAIR_PERIOD_MS = PAIR_BURST * 6_000;

/**
 * Maximum length of a message, in UTF-16 units. WhatsApp counts characters, which are never more.
 * https://developers.facebook.com/documentation/business-messaging/whatsapp/messages/text-messages
 */
const BODY_UNITS_MAX = 4_096;

/** Time after a person's message to the number in which the number may send them a text. */
const WINDOW_MS = 24 * 3_600_000;

/** Creates the state of a WhatsApp with one business number, and one person that it can reach. */
export function createWhatsappState(clock: SandboxClock) {
  return {
    clock,
    phoneNumberId: "106540352242922",
    accessToken: "EAASandboxWhatsappToken0123456789",
    /** Secret of Meta's app, with which it signs what it posts to a webhook. */
    appSecret: "5eb63bbbe01eeed093cb22bb8f5acdc3",
    /** Token that shows a webhook who subscribes it. */
    verifyToken: "sandbox-whatsapp-verify-token",
    /** Webhook that gets the statuses of messages; undefined until it is subscribed. */
    statusUrl: undefined as string | undefined,
    statuses: createRecorded<{ readonly body: string; readonly status: number }>(),
    /** Texts of a month that are delivered; later ones are accepted and lost. */
    freeTexts: 1_000,
    /** Phone number of the only person on this WhatsApp, digits only. */
    to: "15550783881",
    /** Id of the same person for this business, which can replace the phone number. */
    userId: "BR.15550783881407",
    messages: createRecorded<ShownText & { readonly to: string }>(),
    numberBucket: createBucket(),
    pairBucket: createBucket(),
    /** Maximum number of messages per second from the business number. */
    limit: DEFAULT_LIMIT,
    /** Maximum number of messages to the person in 4.5 minutes, at once or spread. */
    pairLimit: PAIR_BURST,
    /** Time of the person's last message to the number, ms since the epoch; text is accepted for 24 hours after it. */
    wroteAt: clock.now(),
  };
}

export type WhatsappState = ReturnType<typeof createWhatsappState>;

export function whatsappHandlers(state: WhatsappState) {
  const number = `${ORIGINS.whatsapp}/:version/:number`;
  const refuse = (request: Request): Response | undefined =>
    graphRefusal(request, {
      isKnownToken: bearerOf(request) === state.accessToken,
      object: state.phoneNumberId,
      refuseToken,
    });
  return [
    http.post(`${number}/messages`, async ({ request }) => refuse(request) ?? send(state, await jsonOf(request))),
    http.get(number, ({ request }) => refuse(request) ?? HttpResponse.json({ id: state.phoneNumberId })),
  ];
}

function send(state: WhatsappState, request: unknown): Response {
  const { messaging_product, to, recipient, type = "text", text, biz_opaque_callback_data: data } = membersOf(request);
  const { body } = membersOf(text);
  if (messaging_product !== "whatsapp") return cloudError(400, 100, "messaging_product wants to be whatsapp");
  // If the caller names the user by both a phone number (`to`) and a user id (`recipient`), WhatsApp sends to the phone
  // number.
  const input = to ?? recipient;
  if (typeof input !== "string" || input === "") return cloudError(400, 100, "to and recipient are missing");
  if (type !== "text") return cloudError(400, 100, "only texts are known here");
  if (typeof body !== "string" || body === "") return cloudError(400, 100, "text.body is missing");
  if (body.length > BODY_UNITS_MAX) return cloudError(400, 100, `text.body has more than ${BODY_UNITS_MAX}`);
  const at = state.clock.now();
  const limit = limitReached(state, at);
  if (limit !== undefined) return rateLimited(limit);
  const reached = to === undefined ? input : input.replace(/\D/g, "");
  if (reached !== (to === undefined ? state.userId : state.to))
    return cloudError(400, 131_026, "Message undeliverable.");
  if (at - state.wroteAt >= WINDOW_MS) return windowClosed();
  const { text: shown, marks } = renderWhatsapp(body);
  state.messages.add({ to: reached, text: body, shown, marks, at });
  const { total } = state.messages;
  const id = `wamid.${btoa(`${reached} ${total}`)}`;
  const callbackData = typeof data === "string" ? data : undefined;
  // The webhook hears of the message after the sender, and may be slow.
  if (state.statusUrl !== undefined)
    setTimeout(() => void postStatus(state, { id, to: reached, callbackData, number: total }), 20);
  const contacts = [{ input, ...(to === undefined ? { user_id: reached } : { wa_id: reached }) }];
  return HttpResponse.json({ messaging_product: "whatsapp", contacts, messages: [{ id }] });
}

/** Counts one message. If a limit is exhausted, counts nothing and returns the error code of that limit. */
function limitReached(state: WhatsappState, now: number): 130_429 | 131_056 | undefined {
  const ofNumber = { bucket: state.numberBucket, limit: state.limit, periodMs: PERIOD_MS };
  const ofPair = { bucket: state.pairBucket, limit: state.pairLimit, periodMs: PAIR_PERIOD_MS };
  if (ofNumber.bucket.waitMs(now, ofNumber) > 0) return 130_429;
  return takeTurn(now, ofNumber, ofPair) > 0 ? 131_056 : undefined;
}

/**
 * Error code of WhatsApp -> its title:
 * https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes
 */
const TITLES = {
  100: "Invalid parameter",
  130_429: "Rate limit hit",
  131_026: "Message undeliverable",
  131_031: "Business Account locked",
  131_047: "Re-engagement message",
  131_056: "(Business Account, Consumer Account) pair rate limit hit",
} as const;

/** Answers with an error of WhatsApp's Cloud API: a Graph API error with additional details. */
function cloudError(status: number, code: keyof typeof TITLES, details: string): Response {
  const error_data = { messaging_product: "whatsapp", details };
  return graphError(status, code, `(#${code}) ${TITLES[code]}`, { error_data });
}

function rateLimited(code: 130_429 | 131_056): Response {
  return cloudError(429, code, "Too many messages were sent in a short time.");
}

const windowClosed = () => cloudError(400, 131_047, "More than 24 hours have passed since the recipient last replied.");

const refuseToken = () => graphError(401, 190, "Invalid OAuth access token - Cannot parse access token");

/** WhatsApp's refusals while a fault is on. The real WhatsApp sends no `Retry-After`. */
export const whatsappRefusals = {
  "429": ({ retryAfter }) => withRetryAfter(rateLimited(130_429), retryAfter),
  "500": () => graphError(500, 131_000, "(#131000) Something went wrong"),
  token_revoked: refuseToken,
  window_closed: windowClosed,
  account_locked: () => cloudError(403, 131_031, "The account has been locked."),
} satisfies Refusals;
