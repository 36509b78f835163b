import { http, HttpResponse } from "msw";
import type { SandboxClock } from "./clock.ts";
import { renderTelegram, type ShownText } from "./render-chat-markup.ts";
import { ORIGINS, type Refusals } from "./network-origins-and-refusals.ts";
import { createBucket, takeTurn } from "./rate-limits.ts";
import { createRecorded } from "./record-received.ts";
import { jsonOf, membersOf } from "./read-request.ts";

type Parameters = Readonly<Record<string, unknown>>;

/**
 * Maximum length of a message, in UTF-16 code units, which Telegram counts:
 * https://core.telegram.org/bots/api#sendmessage
 */
const TEXT_UNITS_MAX = 4_096;

/**
 * Number of messages that a chat accepts in 5 seconds. Telegram documents about one a second with short bursts, and 20
 * a minute per group: https://core.telegram.org/bots/faq
 */
const DEFAULT_LIMIT = 5;
const CHAT_PERIOD_MS = 5_000;
const GROUP_PERIOD_MS = 60_000;
const GROUP_FACTOR = 4;

/** Creates the state of a Telegram with one bot, and one chat that the bot is in. */
export function createTelegramState(clock: SandboxClock) {
  return {
    clock,
    botToken: "1234567890:AASandboxTelegramToken_0123456789abc",
    chatId: "-1009876543210",
    messages: createRecorded<ShownText & { readonly chat_id: string }>(),
    chatBucket: createBucket(),
    groupBucket: createBucket(),
    /**
     * Maximum number of messages to a chat in 5 seconds, at once or spread. A group accepts four times as many per
     * minute.
     */
    limit: DEFAULT_LIMIT,
    /** Id of the supergroup that the group became, if it did. Telegram then refuses the group's old id. */
    migratedTo: undefined as string | undefined,
  };
}

export type TelegramState = ReturnType<typeof createTelegramState>;

export function telegramHandlers(state: TelegramState) {
  return [
    http.all(`${ORIGINS.telegram}/:bot/:method`, async ({ request, params }) => {
      // Telegram answers a path with a malformed token like an unknown path.
      if (!/^bot\d+:[\w-]+$/.test(String(params["bot"]))) return telegramError(404, "Not Found");
      if (params["bot"] !== `bot${state.botToken}`) return telegramError(401, "Unauthorized");
      return call(state, String(params["method"]).toLowerCase(), await parametersOf(request));
    }),
  ];
}

/** Reads a call's parameters from the query, a form or JSON: https://core.telegram.org/bots/api#making-requests */
async function parametersOf(request: Request): Promise<Parameters> {
  const query = Object.fromEntries(new URL(request.url).searchParams);
  const type = request.headers.get("content-type") ?? "";
  if (type.startsWith("application/json")) return { ...query, ...membersOf(await jsonOf(request)) };
  const form = type.startsWith("application/x-www-form-urlencoded") ? await request.text() : "";
  return { ...query, ...Object.fromEntries(new URLSearchParams(form)) };
}

function call(state: TelegramState, method: string, parameters: Parameters): Response {
  switch (method) {
    case "getme":
      return done({ id: 1_234_567_890, is_bot: true, first_name: "Sandbox", username: "sandbox_bot" });
    case "getchat":
      return refuseChat(state, parameters) ?? done({ ...ABOUT_CHAT, id: Number(chatOf(parameters)) });
    case "sendmessage":
      return refuseChat(state, parameters) ?? sendMessage(state, parameters);
    default:
      return telegramError(404, "Not Found: method not found");
  }
}

const CHAT = { type: "supergroup", title: "Sandbox" };

/** Fields of a chat that are always the same here: https://core.telegram.org/bots/api#chatfullinfo */
const ABOUT_CHAT = {
  ...CHAT,
  accent_color_id: 0,
  max_reaction_count: 11,
  accepted_gift_types: {
    unlimited_gifts: false,
    limited_gifts: false,
    unique_gifts: false,
    premium_subscription: false,
    gifts_from_channels: false,
  },
};

/** Returns the chat's id in a call's parameters, a number or text; empty if there is none. */
function chatOf({ chat_id }: Parameters): string {
  return typeof chat_id === "string" || typeof chat_id === "number" ? String(chat_id) : "";
}

function refuseChat({ chatId, migratedTo }: TelegramState, parameters: Parameters): Response | undefined {
  const chat = chatOf(parameters);
  if (chat === "") return telegramError(400, "Bad Request: chat_id is empty");
  if (migratedTo !== undefined && chat === chatId) {
    const migrate_to_chat_id = Number(migratedTo);
    return telegramError(400, "Bad Request: group chat was upgraded to a supergroup chat", { migrate_to_chat_id });
  }
  return chat === (migratedTo ?? chatId) ? undefined : telegramError(400, "Bad Request: chat not found");
}

function sendMessage(state: TelegramState, parameters: Parameters): Response {
  const { text, parse_mode } = parameters;
  if (typeof text !== "string" || text.trim() === "") return telegramError(400, "Bad Request: message text is empty");
  const bad = markupFault(text, parse_mode);
  if (bad !== undefined) return telegramError(400, bad);
  if (text.length > TEXT_UNITS_MAX) return telegramError(400, "Bad Request: message is too long");
  const chat_id = chatOf(parameters);
  const at = state.clock.now();
  const wait = waitMs(state, chat_id, at);
  if (wait > 0) return tooMany(Math.ceil(wait / 1000));
  const { text: shown, marks } = renderTelegram(text);
  state.messages.add({ chat_id, text, shown, marks, at });
  return done({
    message_id: state.messages.total,
    date: Math.floor(at / 1000),
    chat: { ...CHAT, id: Number(chat_id) },
    text,
  });
}

/** Counts one message to the chat and returns 0. If a limit is exhausted, counts nothing and returns the wait in ms. */
function waitMs({ chatBucket, groupBucket, limit }: TelegramState, chatId: string, now: number): number {
  const ofChat = { bucket: chatBucket, limit, periodMs: CHAT_PERIOD_MS };
  const ofGroup = { bucket: groupBucket, limit: GROUP_FACTOR * limit, periodMs: GROUP_PERIOD_MS };
  // Groups have negative ids.
  return chatId.startsWith("-") ? takeTurn(now, ofChat, ofGroup) : takeTurn(now, ofChat);
}

/** Matches an unescaped character that MarkdownV2 reserves: https://core.telegram.org/bots/api#markdownv2-style */
const UNESCAPED_MARKDOWN = /(?<!\\)(?:\\\\)*[_*[\]()~`>#+\-=|{}.!]/;

const UNKNOWN_TAG = /<(?!\/?(?:b|strong|i|em|u|ins|s|strike|del|code|pre|a|tg-spoiler|blockquote)[\s>])/i;

/**
 * Returns the reason why Telegram refuses a text with a parse mode; undefined if it accepts it. Stricter than the real
 * Telegram, which accepts balanced markup.
 */
function markupFault(text: string, parseMode: unknown): string | undefined {
  if (parseMode === undefined || parseMode === "") return undefined;
  const mode = typeof parseMode === "string" ? parseMode.toLowerCase() : "";
  if (!["html", "markdown", "markdownv2"].includes(mode)) return "Bad Request: unsupported parse_mode";
  const bad = mode === "html" ? UNKNOWN_TAG.exec(text) : UNESCAPED_MARKDOWN.exec(text);
  if (bad === null) return undefined;
  return `Bad Request: can't parse entities: Character '${bad[0].at(-1)}' is reserved at byte offset ${bad.index}`;
}

function done(result: Parameters): Response {
  return HttpResponse.json({ ok: true, result });
}

/**
 * Answers with an error of Telegram, whose code is the HTTP status: https://core.telegram.org/bots/api#making-requests
 */
export function telegramError(error_code: number, description: string, parameters?: Parameters): Response {
  return HttpResponse.json({ ok: false, error_code, description, parameters }, { status: error_code });
}

function tooMany(retry_after: number): Response {
  return telegramError(429, `Too Many Requests: retry after ${retry_after}`, { retry_after });
}

export const telegramRefusals = {
  "429": ({ retryAfter }) => (retryAfter === undefined ? telegramError(429, "Too Many Requests") : tooMany(retryAfter)),
  "500": () => telegramError(500, "Internal Server Error"),
  token_revoked: () => telegramError(401, "Unauthorized"),
  channel_archived: () => telegramError(403, "Forbidden: bot was kicked from the supergroup chat"),
  bot_blocked: () => telegramError(403, "Forbidden: bot was blocked by the user"),
} satisfies Refusals;
