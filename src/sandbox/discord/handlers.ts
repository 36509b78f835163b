import { http, HttpResponse } from "msw";
import type { SandboxClock } from "../clock.ts";
import { createArrivals, TEXTS_KEPT, type Arrivals } from "../journal.ts";
import type { Rendered } from "../rendered.ts";
import { createWindows, type Windows, type WindowState } from "../window.ts";
import { failed, invalidForm, rateLimited, unknownVersion, unknownWebhook, versionOf, wrongToken } from "./answers.ts";
import { renderDiscord } from "./markdown.ts";

export interface DiscordMessage extends Rendered {
  /** As it was sent, with its escapes. */
  readonly content: string;
  /** Whether anybody was woken by it. */
  readonly pings: boolean;
  readonly embeds: boolean;
  readonly at: number;
}

export interface DiscordState {
  readonly clock: SandboxClock;
  readonly webhookId: string;
  readonly webhookToken: string;
  readonly messages: Arrivals<DiscordMessage>;
  readonly windows: Windows;
  /** Messages in 2 seconds. */
  limit: number;
}

/** "Do not hard-code limits"; this is what a webhook's headers have been telling for years. */
const DEFAULT_LIMIT = 5;
const WINDOW_MS = 2_000;

/** https://docs.discord.com/developers/resources/webhook#execute-webhook */
const CONTENT_CHARS_MAX = 2_000;

const SUPPRESS_EMBEDS = 4;

/** Where ids of messages begin. */
const FIRST_ID = 1_440_000_000_000_000_000n;

export function createDiscordState(clock: SandboxClock): DiscordState {
  return {
    clock,
    webhookId: "1234567890123456789",
    webhookToken: "sandboxWebhookToken_0123456789-abcdefghijklmnopqrstuvwxyzABCDEFGHIJK",
    messages: createArrivals(TEXTS_KEPT),
    windows: createWindows(),
    limit: DEFAULT_LIMIT,
  };
}

/** One webhook, with the API's version in the path or without, which is another version. */
export function discordHandlers(state: DiscordState) {
  const webhook = /^https:\/\/discord\.com\/api(?:\/v\d+)?\/webhooks\/([^/]+)\/([^/?]+)(?:\?|$)/;
  const guarded = async (request: Request, handle: () => Response | Promise<Response>): Promise<Response> => {
    const [, id, token] = webhook.exec(request.url) ?? [];
    if (versionOf(request.url) === undefined) return unknownVersion();
    if (id !== state.webhookId) return unknownWebhook();
    return token === state.webhookToken ? handle() : wrongToken();
  };
  return [
    http.get(webhook, ({ request }) =>
      guarded(request, () => HttpResponse.json({ id: state.webhookId, type: 1, name: "Sandbox", channel_id: "77" })),
    ),
    http.post(webhook, ({ request }) => guarded(request, () => execute(state, request))),
  ];
}

async function execute(state: DiscordState, request: Request): Promise<Response> {
  const now = state.clock.now();
  const window = state.windows.take("webhook", state.limit, WINDOW_MS, now);
  if (!window.allowed) return rateLimited((window.resetAt - now) / 1000, versionOf(request.url));
  const isJson = /^application\/json\b/i.test(request.headers.get("content-type") ?? "");
  const body: unknown = isJson ? await request.json().catch(() => undefined) : undefined;
  if (typeof body !== "object" || body === null) return failed(400, 50_109, "The request body contains invalid JSON.");
  const { content, allowed_mentions, flags } = body as Record<string, unknown>;
  // Discord trims what it is sent.
  const text = typeof content === "string" ? content.trim() : "";
  if (text === "") return failed(400, 50_006, "Cannot send an empty message");
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
  return answer(state, request, window);
}

/** With `wait` the message, else nothing. */
function answer({ messages, webhookId }: DiscordState, request: Request, window: WindowState): Response {
  const headers = {
    "x-ratelimit-limit": String(window.limit),
    "x-ratelimit-remaining": String(window.remaining),
    "x-ratelimit-reset-after": (WINDOW_MS / 1000).toFixed(3),
  };
  const wait = new URL(request.url).searchParams.get("wait");
  if (wait !== "true" && wait !== "1") return new Response(null, { status: 204, headers });
  const id = String(FIRST_ID + BigInt(messages.total));
  return HttpResponse.json({ id, type: 0, webhook_id: webhookId, channel_id: "77" }, { headers });
}

/** Whether `allowed_mentions` allows none at all. */
function isSilent(allowed: unknown): boolean {
  if (typeof allowed !== "object" || allowed === null) return false;
  const { parse, users, roles } = allowed as { parse?: unknown; users?: unknown; roles?: unknown };
  const isNone = (list: unknown): boolean => list === undefined || (Array.isArray(list) && list.length === 0);
  return Array.isArray(parse) && parse.length === 0 && isNone(users) && isNone(roles);
}
