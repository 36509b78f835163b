import { http, HttpResponse } from "msw";
import type { SandboxClock } from "./clock.ts";
import { renderDiscord, type Rendered } from "./render-chat-markup.ts";
import type { Refusals } from "./network-origins-and-refusals.ts";
import { createWindows, type WindowState } from "./rate-limits.ts";
import { createRecorded } from "./record-received.ts";
import { isJson, jsonOf, membersOf } from "./read-request.ts";

export interface DiscordMessage extends Rendered {
  /** Text of the message as the service sent it, with its escapes. */
  readonly content: string;
  /** True if the message notified a person. */
  readonly pings: boolean;
  readonly embeds: boolean;
  readonly at: number;
}

/**
 * Number of requests that the simulated Discord accepts in 2 seconds unless a test sets another limit. Real Discord's
 * response headers have stated this limit for years, but its documentation tells clients not to hard-code it.
 */
const DEFAULT_LIMIT = 5;
const WINDOW_MS = 2_000;

/** Maximum length of a message: https://docs.discord.com/developers/resources/webhook#execute-webhook */
const CONTENT_CHARS_MAX = 2_000;

const SUPPRESS_EMBEDS = 4;

/** Id of the first message; later ones count up from it. */
const FIRST_ID = 1_440_000_000_000_000_000n;

/**
 * Description of the webhook, which Discord returns to a GET:
 * https://docs.discord.com/developers/resources/webhook#webhook-object
 */
const ABOUT = { type: 1, name: "Sandbox", avatar: null, channel_id: "77", guild_id: "76", application_id: null };

/** Creates the state of a Discord with one webhook. */
export function createDiscordState(clock: SandboxClock) {
  return {
    clock,
    webhookId: "1234567890123456789",
    webhookToken: "sandboxWebhookToken_0123456789-abcdefghijklmnopqrstuvwxyzABCDEFGHIJK",
    messages: createRecorded<DiscordMessage>(),
    windows: createWindows(),
    /** Maximum number of messages in 2 seconds. */
    limit: DEFAULT_LIMIT,
  };
}

export type DiscordState = ReturnType<typeof createDiscordState>;

/** Handles requests to Discord's webhooks. An address without a version means the API's first version. */
export function discordHandlers(state: DiscordState) {
  const webhook = /^https:\/\/discord\.com\/api(?:\/v\d+)?\/webhooks\/([^/]+)\/([^/?]+)(?:\?|$)/;
  const guarded = async (request: Request, handle: () => Response | Promise<Response>): Promise<Response> => {
    const [, id, token] = webhook.exec(request.url) ?? [];
    if (versionOf(request.url) === undefined) return discordError(400, 50_041, "Invalid API version");
    if (id !== state.webhookId) return unknownWebhook();
    return token === state.webhookToken ? handle() : wrongToken();
  };
  return [
    http.get(webhook, ({ request }) =>
      guarded(request, () => HttpResponse.json({ ...ABOUT, id: state.webhookId, token: state.webhookToken })),
    ),
    http.post(webhook, ({ request }) => guarded(request, () => execute(state, request))),
  ];
}

async function execute(state: DiscordState, request: Request): Promise<Response> {
  const now = state.clock.now();
  const window = state.windows.take("webhook", state.limit, WINDOW_MS, now);
  if (!window.allowed) return rateLimited((window.resetAt - now) / 1000, versionOf(request.url));
  const body = isJson(request) ? await jsonOf(request) : undefined;
  if (typeof body !== "object" || body === null) {
    return discordError(400, 50_109, "The request body contains invalid JSON.");
  }
  const { content, allowed_mentions, flags } = membersOf(body);
  // Discord trims the text of a message.
  const text = typeof content === "string" ? content.trim() : "";
  if (text === "") return discordError(400, 50_006, "Cannot send an empty message");
  if (text.length > CONTENT_CHARS_MAX) {
    return invalidForm("content", "BASE_TYPE_MAX_LENGTH", `Must be ${CONTENT_CHARS_MAX} or fewer in length.`);
  }
  const shown = renderDiscord(text);
  state.messages.add({
    content: text,
    ...shown,
    pings: shown.marks.includes("mention") && !isSilent(allowed_mentions),
    embeds: /https?:/.test(text) && (Number(flags ?? 0) & SUPPRESS_EMBEDS) === 0,
    at: now,
  });
  return answer(state, request, window, { content: text, flags: Number(flags ?? 0) });
}

/**
 * Fields to which the sandbox's Discord gives the same value in each message:
 * https://docs.discord.com/developers/resources/message#message-object
 */
const NOTHING_MORE = {
  type: 0,
  channel_id: ABOUT.channel_id,
  attachments: [],
  components: [],
  embeds: [],
  mentions: [],
  mention_roles: [],
  mention_everyone: false,
  pinned: false,
  tts: false,
  edited_timestamp: null,
};

/** Answers a message that Discord accepted: with the message if the query has `wait`, otherwise with an empty body. */
function answer(
  { messages, webhookId, clock }: DiscordState,
  request: Request,
  window: WindowState,
  sent: { readonly content: string; readonly flags: number },
): Response {
  const headers = {
    "x-ratelimit-limit": String(window.limit),
    "x-ratelimit-remaining": String(window.remaining),
    "x-ratelimit-reset-after": (WINDOW_MS / 1000).toFixed(3),
  };
  const wait = new URL(request.url).searchParams.get("wait");
  if (wait !== "true" && wait !== "1") return new Response(null, { status: 204, headers });
  const id = String(FIRST_ID + BigInt(messages.total));
  const timestamp = new Date(clock.now()).toISOString();
  const author = { id: webhookId, username: ABOUT.name, avatar: null, discriminator: "0000", bot: true };
  return HttpResponse.json({ ...NOTHING_MORE, ...sent, id, webhook_id: webhookId, author, timestamp }, { headers });
}

/** True if the message's `allowed_mentions` forbids all notifications by mentions. */
function isSilent(allowed: unknown): boolean {
  const { parse, users, roles } = membersOf(allowed);
  const isNone = (list: unknown): boolean => list === undefined || (Array.isArray(list) && list.length === 0);
  return Array.isArray(parse) && parse.length === 0 && isNone(users) && isNone(roles);
}

/**
 * First and last version of the API that Discord supports. An address without a version means the first one.
 * https://docs.discord.com/developers/reference#api-versioning
 */
const VERSIONS = { first: 6, last: 10 } as const;

/**
 * First version of the API whose `retry_after` is in seconds instead of ms:
 * https://docs.discord.com/developers/change-log#api-and-gateway-v8
 */
const PAUSES_IN_SECONDS = 8;

/** Returns the version of the API in an address; undefined if Discord does not support it. */
function versionOf(path: string): number | undefined {
  const version = Number(/\/api\/v(\d+)\//.exec(path)?.[1] ?? VERSIONS.first);
  return version >= VERSIONS.first && version <= VERSIONS.last ? version : undefined;
}

/** Answers with an error of Discord's API: https://docs.discord.com/developers/reference#error-messages */
export function discordError(status: number, code: number, message: string): Response {
  return HttpResponse.json({ message, code }, { status });
}

const unknownWebhook = () => discordError(404, 10_015, "Unknown Webhook");

const wrongToken = () => discordError(401, 50_027, "Invalid Webhook Token");

/** Refuses a message because of one field: https://docs.discord.com/developers/reference#error-messages */
function invalidForm(field: string, code: string, message: string): Response {
  const errors = { [field]: { _errors: [{ code, message }] } };
  return HttpResponse.json({ message: "Invalid Form Body", code: 50_035, errors }, { status: 400 });
}

/**
 * Answers 429. The wait has fractions of a second in the body and whole seconds in the header; versions before 8 use
 * milliseconds in both.
 */
function rateLimited(seconds: number, version = VERSIONS.last as number): Response {
  const retry_after = version < PAUSES_IN_SECONDS ? Math.ceil(seconds * 1000) : seconds;
  const headers = { "retry-after": String(Math.ceil(retry_after)), "x-ratelimit-scope": "user" };
  const body = { message: "You are being rate limited.", retry_after, global: false };
  return HttpResponse.json(body, { status: 429, headers });
}

/** Answers 429 as the proxy in front of Discord does to an address with too many requests. */
function banned(): Response {
  return new Response("error code: 1015", { status: 429, headers: { "content-type": "text/plain" } });
}

export const discordRefusals = {
  "429": ({ retryAfter, path }) => (retryAfter === undefined ? banned() : rateLimited(retryAfter, versionOf(path))),
  "500": () => discordError(500, 0, "500: Internal Server Error"),
  token_revoked: wrongToken,
  webhook_deleted: unknownWebhook,
} satisfies Refusals;
