import { http, HttpResponse } from "msw";
import type { SandboxClock } from "./clock.ts";
import { createArrivals, type Arrivals } from "./journal.ts";
import { ORIGINS } from "./network.ts";
import { createWindows, type Windows } from "./window.ts";

export interface TelegramState {
  readonly clock: SandboxClock;
  readonly botToken: string;
  readonly chatId: string;
  readonly messages: Arrivals<{ readonly chat_id: string; readonly text: string; readonly at: number }>;
  readonly windows: Windows;
  /** Messages to one chat in a few seconds; about one a second, with short bursts. */
  limit: number;
  /** The group became a supergroup with this id: the old one is refused. */
  migratedTo: string | undefined;
}

const WINDOW_MS = 5_000;
const DEFAULT_LIMIT = 5;

/** UTF-16 code units, as Telegram counts. */
const TEXT_UNITS_MAX = 4_096;

export function createTelegramState(clock: SandboxClock): TelegramState {
  return {
    clock,
    botToken: "1234567890:AASandboxTelegramToken_0123456789abc",
    chatId: "-1009876543210",
    messages: createArrivals(),
    windows: createWindows(),
    limit: DEFAULT_LIMIT,
    migratedTo: undefined,
  };
}

export function telegramHandlers(state: TelegramState) {
  return [
    http.all(`${ORIGINS.telegram}/:bot/:method`, async ({ request, params }) => {
      // The real API knows no such path for a bot that is none.
      if (params["bot"] !== `bot${state.botToken}`) return failed(401, "Unauthorized");
      const given = request.method === "POST" ? await request.json().catch(() => ({})) : {};
      const query = Object.fromEntries(new URL(request.url).searchParams);
      return answer(state, String(params["method"]), { ...query, ...(given as Record<string, unknown>) });
    }),
  ];
}

function answer(state: TelegramState, method: string, body: Record<string, unknown>): Response {
  switch (method.toLowerCase()) {
    case "getme":
      return HttpResponse.json({
        ok: true,
        result: { id: 1_234_567_890, is_bot: true, first_name: "Sandbox", username: "sandbox_bot" },
      });
    case "getchat":
      return (
        refuseChat(state, body) ??
        HttpResponse.json({ ok: true, result: { id: Number(body["chat_id"]), type: "supergroup" } })
      );
    case "sendmessage":
      return sendMessage(state, body);
    default:
      return failed(404, "Not Found: method not found");
  }
}

/** Chats are named by numbers, or by texts of digits. */
function chatOf({ chat_id }: Record<string, unknown>): string {
  return typeof chat_id === "string" || typeof chat_id === "number" ? String(chat_id) : "";
}

function refuseChat(state: TelegramState, body: Record<string, unknown>) {
  const chat = chatOf(body);
  if (chat === "") return failed(400, "Bad Request: chat_id is empty");
  if (state.migratedTo !== undefined && chat === state.chatId) {
    const parameters = { migrate_to_chat_id: Number(state.migratedTo) };
    return failed(400, "Bad Request: group chat was upgraded to a supergroup chat", parameters);
  }
  return chat === (state.migratedTo ?? state.chatId) ? undefined : failed(400, "Bad Request: chat not found");
}

function sendMessage(state: TelegramState, body: Record<string, unknown>): Response {
  const refused = refuseChat(state, body);
  if (refused !== undefined) return refused;
  const { text } = body;
  if (typeof text !== "string" || text.trim() === "") return failed(400, "Bad Request: message text is empty");
  if (text.length > TEXT_UNITS_MAX) return failed(400, "Bad Request: message is too long");
  const now = state.clock.now();
  const { allowed, resetAt } = state.windows.take("chat", state.limit, WINDOW_MS, now);
  if (!allowed) {
    const retry_after = Math.max(1, Math.ceil((resetAt - now) / 1000));
    return failed(429, `Too Many Requests: retry after ${retry_after}`, { retry_after });
  }
  const chat_id = chatOf(body);
  state.messages.add({ chat_id, text, at: now });
  const date = Math.floor(now / 1000);
  return HttpResponse.json({
    ok: true,
    result: { message_id: state.messages.total, date, chat: { id: Number(chat_id), type: "supergroup" }, text },
  });
}

function failed(error_code: number, description: string, parameters?: Record<string, unknown>) {
  const more = parameters === undefined ? {} : { parameters };
  return HttpResponse.json({ ok: false, error_code, description, ...more }, { status: error_code });
}

/** What Telegram answers when a fault is switched on. */
export function telegramRefusal(kind: string, retryAfter: number | undefined): Response | undefined {
  switch (kind) {
    case "429":
      return failed(429, "Too Many Requests", retryAfter === undefined ? undefined : { retry_after: retryAfter });
    case "500":
      return failed(500, "Internal Server Error");
    case "502_html":
      return HttpResponse.html("<html><body><h1>502 Bad Gateway</h1></body></html>", { status: 502 });
    case "channel_archived":
      return failed(403, "Forbidden: bot was kicked from the supergroup chat");
    case "token_revoked":
      return failed(401, "Unauthorized");
    default:
      return undefined;
  }
}
