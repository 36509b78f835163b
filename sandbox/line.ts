import { http, HttpResponse } from "msw";
import type { SandboxClock } from "./clock.ts";
import { ORIGINS, type Refusals } from "./network-origins-and-refusals.ts";
import { createBucket, takeTurn } from "./rate-limits.ts";
import { createRecorded } from "./record-received.ts";
import { bearerOf, jsonOf, membersOf, withRetryAfter } from "./read-request.ts";

/** A request to send a message (LINE's push API) that LINE accepted, kept to recognize a retry. */
interface Accepted {
  readonly requestId: string;
  readonly sentMessages: readonly { readonly id: string; readonly quoteToken: string }[];
  readonly at: number;
}

/**
 * Number of requests that LINE accepts per second: https://developers.line.biz/en/reference/messaging-api/#rate-limits
 */
const DEFAULT_LIMIT = 2_000;
const PERIOD_MS = 1_000;

/**
 * Time for which LINE remembers a request's retry key:
 * https://developers.line.biz/en/docs/messaging-api/retrying-api-request/
 */
const KEY_KNOWN_MS = 24 * 3_600_000;

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/**
 * Description of the account, which LINE returns to a GET:
 * https://developers.line.biz/en/reference/messaging-api/#get-bot-info
 */
const ABOUT = {
  userId: "Ufedcba9876543210fedcba9876543210",
  basicId: "@sandbox",
  displayName: "Sandbox",
  chatMode: "bot",
  markAsReadMode: "auto",
};

/** Creates the state of a LINE with one official account, and one user who is its friend. */
export function createLineState(clock: SandboxClock) {
  return {
    clock,
    accessToken: "SandboxLineChannelAccessToken0123456789",
    /** Id of the only user, who receives all messages. */
    to: "U0123456789abcdef0123456789abcdef",
    messages: createRecorded<{ readonly to: string; readonly text: string; readonly at: number }>(),
    /** Retry key -> the push request that LINE accepted with this key. */
    accepted: new Map<string, Accepted>(),
    bucket: createBucket(),
    /** Maximum number of requests per second. */
    limit: DEFAULT_LIMIT,
    /** Number of messages that the account may still send this month. */
    quota: Infinity,
  };
}

export type LineState = ReturnType<typeof createLineState>;

export function lineHandlers(state: LineState) {
  return [
    http.post(`${ORIGINS.line}/v2/bot/message/push`, async ({ request }) => {
      if (bearerOf(request) !== state.accessToken) return unauthorized();
      const { bucket, limit, clock } = state;
      return takeTurn(clock.now(), { bucket, limit, periodMs: PERIOD_MS }) > 0 ? tooMany() : push(state, request);
    }),
    http.get(`${ORIGINS.line}/v2/bot/info`, ({ request }) =>
      bearerOf(request) === state.accessToken ? HttpResponse.json(ABOUT) : unauthorized(),
    ),
  ];
}

async function push(state: LineState, request: Request): Promise<Response> {
  const key = request.headers.get("x-line-retry-key");
  if (key !== null && !UUID.test(key)) return lineError(400, "The retry key is invalid");
  const body = await jsonOf(request);
  if (body === undefined) return lineError(400, "The request body could not be parsed as JSON (line: 1, column: 1)");
  const fault = pushFault(body);
  if (fault !== undefined) return lineError(400, "The request body has 1 error(s)", [fault]);
  const before = key === null ? undefined : acceptedBefore(state, key);
  if (before !== undefined) return accept(409, before);
  const { to, messages } = body as { to: string; messages: readonly { text: string }[] };
  if (to !== state.to) return lineError(400, "Failed to send messages");
  if (messages.length > state.quota) return monthlyLimit();
  state.quota -= messages.length;
  const at = state.clock.now();
  const sentMessages = messages.map(({ text }) => {
    state.messages.add({ to, text, at });
    return { id: String(461_230_966_842_064_000n + BigInt(state.messages.total)), quoteToken: "sandboxQuoteToken" };
  });
  const accepted = { requestId: crypto.randomUUID(), sentMessages, at };
  if (key !== null) state.accepted.set(key, accepted);
  return accept(200, accepted);
}

/**
 * Returns the push request that LINE accepted with this retry key; undefined if there is none or LINE has forgotten the
 * key.
 */
function acceptedBefore({ accepted, clock }: LineState, key: string): Accepted | undefined {
  const before = accepted.get(key);
  return before !== undefined && clock.now() - before.at < KEY_KNOWN_MS ? before : undefined;
}

/**
 * Answers a push request that LINE accepted. LINE answers a retry with 409, and repeats the outcome of the first
 * request.
 */
function accept(status: 200 | 409, { requestId, sentMessages }: Accepted): Response {
  if (status === 200) return HttpResponse.json({ sentMessages }, { headers: { "x-line-request-id": requestId } });
  return HttpResponse.json(
    { message: "The retry key is already accepted", sentMessages },
    { status, headers: { "x-line-accepted-request-id": requestId } },
  );
}

interface Detail {
  readonly message: string;
  readonly property: string;
}

/**
 * Maximum number of messages in a push request:
 * https://developers.line.biz/en/reference/messaging-api/#send-push-message
 */
const MESSAGES_MAX = 5;

/**
 * Maximum length of a text, in UTF-16 units: https://developers.line.biz/en/docs/messaging-api/text-character-count/
 */
const TEXT_UNITS_MAX = 5_000;

/**
 * Returns the reason why LINE refuses a push request; undefined if it accepts the request. The sandbox accepts only
 * texts.
 */
function pushFault(body: unknown): Detail | undefined {
  const { to, messages } = membersOf(body);
  if (typeof to !== "string" || to === "") return { message: "May not be empty", property: "to" };
  if (!Array.isArray(messages) || messages.length < 1 || messages.length > MESSAGES_MAX) {
    return { message: `Size must be between 1 and ${MESSAGES_MAX}`, property: "messages" };
  }
  return (messages as unknown[]).map(messageFault).find((fault) => fault !== undefined);
}

function messageFault(message: unknown, at: number): Detail | undefined {
  const { type, text } = membersOf(message);
  if (type !== "text") {
    return { message: "Must be one of the following values: [text]", property: `messages[${at}].type` };
  }
  const property = `messages[${at}].text`;
  if (typeof text !== "string" || text === "") return { message: "May not be empty", property };
  if (text.length <= TEXT_UNITS_MAX) return undefined;
  return { message: `Length must be between 0 and ${TEXT_UNITS_MAX}`, property };
}

/** Answers with an error of LINE: https://developers.line.biz/en/reference/messaging-api/#error-responses */
export function lineError(status: number, message: string, details?: readonly Detail[]): Response {
  return HttpResponse.json({ message, ...(details === undefined ? {} : { details }) }, { status });
}

function unauthorized(): Response {
  const reason = "invalid token. Confirm that the access token in the authorization header is valid.";
  return lineError(401, `Authentication failed due to the following reason: ${reason}`);
}

const tooMany = () => lineError(429, "The API rate limit has been exceeded. Try again later.");

const monthlyLimit = () => lineError(429, "You have reached your monthly limit.");

/** LINE's refusals while a fault is on. The real LINE sends no `Retry-After`. */
export const lineRefusals = {
  "429": ({ retryAfter }) => withRetryAfter(tooMany(), retryAfter),
  "500": () => lineError(500, "Internal Server Error"),
  token_revoked: unauthorized,
  monthly_limit: monthlyLimit,
} satisfies Refusals;
