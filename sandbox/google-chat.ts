import { http, HttpResponse } from "msw";
import type { SandboxClock } from "./clock.ts";
import { renderGoogleChat, type Rendered } from "./render-chat-markup.ts";
import { ORIGINS, type Refusals } from "./network-origins-and-refusals.ts";
import { createBucket, takeTurn } from "./rate-limits.ts";
import { createRecorded } from "./record-received.ts";
import { membersOf, parseJson, withRetryAfter } from "./read-request.ts";

/**
 * Number of messages that a space accepts per minute from all its senders together:
 * https://developers.google.com/workspace/chat/limits
 */
const DEFAULT_LIMIT = 60;
const PERIOD_MS = 60_000;

/**
 * Maximum size of a request body, which is one message:
 * https://developers.google.com/workspace/chat/api/reference/rest/v1/spaces.messages/create
 */
const MESSAGE_BYTES_MAX = 32_000;

/** Creates the state of a Google Chat with one webhook in one space. */
export function createGoogleChatState(clock: SandboxClock) {
  return {
    clock,
    space: "AAAASandbox",
    key: "AIzaSandboxKey0123456789abcdefghijklmno",
    token: "sandboxToken_0123456789-abcdefghijk=",
    messages: createRecorded<Rendered & { readonly at: number }>(),
    bucket: createBucket(),
    /** Maximum number of messages per minute, at once or spread. */
    limit: DEFAULT_LIMIT,
  };
}

export type GoogleChatState = ReturnType<typeof createGoogleChatState>;

export function googleChatHandlers(state: GoogleChatState) {
  return [
    http.post(`${ORIGINS.google_chat}/v1/spaces/:space/messages`, async ({ request, params }) => {
      const { searchParams } = new URL(request.url);
      if (searchParams.get("key") !== state.key) return wrongKey();
      if (searchParams.get("token") !== state.token) return wrongToken();
      if (params["space"] !== state.space) return noSpace();
      return create(state, await request.text());
    }),
  ];
}

function create(state: GoogleChatState, body: string): Response {
  const fault = faultOf(body);
  if (fault !== undefined) return googleError(400, "INVALID_ARGUMENT", fault);
  const { bucket, limit, clock, messages, space } = state;
  const now = clock.now();
  if (takeTurn(now, { bucket, limit, periodMs: PERIOD_MS }) > 0) return rateLimited();
  const { text } = parseJson(body) as { text: string };
  messages.add({ ...renderGoogleChat(text), at: now });
  const thread = { name: `spaces/${space}/threads/t${messages.total}` };
  return HttpResponse.json({ name: `spaces/${space}/messages/t.${messages.total}`, text, thread });
}

/** Returns the reason why Google refuses the message; undefined if it accepts it. */
function faultOf(body: string): string | undefined {
  const message = parseJson(body);
  if (typeof message !== "object" || message === null) return "Invalid JSON payload received. Unexpected token.";
  const unknown = Object.keys(message).find((name) => !["text", "thread", "cardsV2"].includes(name));
  if (unknown !== undefined) return `Invalid JSON payload received. Unknown name "${unknown}": Cannot find field.`;
  const { text } = membersOf(message);
  if (text !== undefined && typeof text !== "string") return "Invalid value at 'message.text' (TYPE_STRING)";
  if (text === undefined || text.trim() === "") {
    return "Message cannot be empty. Discarding empty create message request in spaces/AAAASandbox.";
  }
  return Buffer.byteLength(body) > MESSAGE_BYTES_MAX ? "Message is too long." : undefined;
}

/** Answers with an error of Google's APIs: https://cloud.google.com/apis/design/errors#http_mapping */
export function googleError(code: number, status: string, message: string, reason?: string): Response {
  const details = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: "googleapis.com" }];
  const error = { code, message, status, ...(reason === undefined ? {} : { details }) };
  return HttpResponse.json({ error }, { status: code });
}

const wrongKey = () =>
  googleError(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", "API_KEY_INVALID");

const wrongToken = () => googleError(403, "PERMISSION_DENIED", "The API is called without a valid token.");

const noSpace = () => googleError(404, "NOT_FOUND", "Space not found.");

/** Answers 429. Google does not say how long to wait. */
const rateLimited = () => googleError(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).");

export const googleChatRefusals = {
  "429": ({ retryAfter }) => withRetryAfter(rateLimited(), retryAfter),
  "500": () => googleError(500, "INTERNAL", "Internal error encountered."),
  token_revoked: wrongToken,
  space_deleted: noSpace,
} satisfies Refusals;
