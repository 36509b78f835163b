import { http, HttpResponse } from "msw";
import { createBucket, type Bucket } from "../bucket.ts";
import type { SandboxClock } from "../clock.ts";
import { createArrivals, TEXTS_KEPT, type Arrivals } from "../journal.ts";
import { ORIGINS } from "../network.ts";
import type { Rendered } from "../rendered.ts";
import { invalid, noSpace, rateLimited, wrongKey, wrongToken } from "./answers.ts";
import { renderGoogleChat } from "./markup.ts";

export interface GoogleChatState {
  readonly clock: SandboxClock;
  readonly space: string;
  readonly key: string;
  readonly token: string;
  readonly messages: Arrivals<Rendered & { readonly at: number }>;
  readonly bucket: Bucket;
  /** Messages in a minute, at once or spread. */
  limit: number;
}

/** A space's, shared by all that write there: https://developers.google.com/workspace/chat/limits */
const DEFAULT_LIMIT = 60;
const PERIOD_MS = 60_000;

/** The whole message: https://developers.google.com/workspace/chat/api/reference/rest/v1/spaces.messages/create */
const MESSAGE_BYTES_MAX = 32_000;

export function createGoogleChatState(clock: SandboxClock): GoogleChatState {
  return {
    clock,
    space: "AAAASandbox",
    key: "AIzaSandboxKey0123456789abcdefghijklmno",
    token: "sandboxToken_0123456789-abcdefghijk=",
    messages: createArrivals(TEXTS_KEPT),
    bucket: createBucket(),
    limit: DEFAULT_LIMIT,
  };
}

/** One webhook of one space. */
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
  if (fault !== undefined) return invalid(fault);
  const now = state.clock.now();
  const rate = { limit: state.limit, periodMs: PERIOD_MS };
  if (state.bucket.waitMs(now, rate) > 0) return rateLimited();
  state.bucket.take(now, rate);
  const { text } = JSON.parse(body) as { text: string };
  state.messages.add({ ...renderGoogleChat(text), at: now });
  const thread = { name: `spaces/${state.space}/threads/t${state.messages.total}` };
  return HttpResponse.json({ name: `spaces/${state.space}/messages/t.${state.messages.total}`, text, thread });
}

/** What Google complains of; undefined: nothing. */
function faultOf(body: string): string | undefined {
  const message = parsed(body);
  if (message === undefined) return "Invalid JSON payload received. Unexpected token.";
  const unknown = Object.keys(message).find((name) => !["text", "thread", "cardsV2"].includes(name));
  if (unknown !== undefined) return `Invalid JSON payload received. Unknown name "${unknown}": Cannot find field.`;
  const { text } = message;
  if (text !== undefined && typeof text !== "string") return "Invalid value at 'message.text' (TYPE_STRING)";
  if (text === undefined || text.trim() === "") {
    return "Message cannot be empty. Discarding empty create message request in spaces/AAAASandbox.";
  }
  if (Buffer.byteLength(body) > MESSAGE_BYTES_MAX) return "Message is too long.";
  return undefined;
}

function parsed(body: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
