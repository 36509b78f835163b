import { http } from "msw";
import { ORIGINS } from "../network.ts";
import { done, failed, tooMany } from "./answers.ts";
import { renderTelegram } from "./entities.ts";
import { markupFault } from "./markup.ts";
import { takeTurn, type TelegramState } from "./state.ts";

type Parameters = Readonly<Record<string, unknown>>;

/** UTF-16 code units, as Telegram counts: https://core.telegram.org/bots/api#sendmessage */
const TEXT_UNITS_MAX = 4_096;

/** One bot, and the one chat that it is in. */
export function telegramHandlers(state: TelegramState) {
  return [
    http.all(`${ORIGINS.telegram}/:bot/:method`, async ({ request, params }) => {
      // A token of another form is no path that the API knows.
      if (!/^bot\d+:[\w-]+$/.test(String(params["bot"]))) return failed(404, "Not Found");
      if (params["bot"] !== `bot${state.botToken}`) return failed(401, "Unauthorized");
      return call(state, String(params["method"]).toLowerCase(), await parametersOf(request));
    }),
  ];
}

/** Taken from the query, a form or JSON: https://core.telegram.org/bots/api#making-requests */
async function parametersOf(request: Request): Promise<Parameters> {
  const query = Object.fromEntries(new URL(request.url).searchParams);
  const type = request.headers.get("content-type") ?? "";
  if (type.startsWith("application/json")) {
    return { ...query, ...((await request.json().catch(() => ({}))) as Parameters) };
  }
  const form = type.startsWith("application/x-www-form-urlencoded") ? await request.text() : "";
  return { ...query, ...Object.fromEntries(new URLSearchParams(form)) };
}

function call(state: TelegramState, method: string, parameters: Parameters): Response {
  switch (method) {
    case "getme":
      return done({ id: 1_234_567_890, is_bot: true, first_name: "Sandbox", username: "sandbox_bot" });
    case "getchat":
      return refuseChat(state, parameters) ?? done({ id: Number(chatOf(parameters)), type: "supergroup" });
    case "sendmessage":
      return refuseChat(state, parameters) ?? sendMessage(state, parameters);
    default:
      return failed(404, "Not Found: method not found");
  }
}

/** Chats are named by numbers, or by texts of digits. */
function chatOf({ chat_id }: Parameters): string {
  return typeof chat_id === "string" || typeof chat_id === "number" ? String(chat_id) : "";
}

function refuseChat(state: TelegramState, parameters: Parameters): Response | undefined {
  const chat = chatOf(parameters);
  if (chat === "") return failed(400, "Bad Request: chat_id is empty");
  if (state.migratedTo !== undefined && chat === state.chatId) {
    const migrate_to_chat_id = Number(state.migratedTo);
    return failed(400, "Bad Request: group chat was upgraded to a supergroup chat", { migrate_to_chat_id });
  }
  return chat === (state.migratedTo ?? state.chatId) ? undefined : failed(400, "Bad Request: chat not found");
}

function sendMessage(state: TelegramState, parameters: Parameters): Response {
  const { text, parse_mode } = parameters;
  if (typeof text !== "string" || text.trim() === "") return failed(400, "Bad Request: message text is empty");
  const bad = markupFault(text, parse_mode);
  if (bad !== undefined) return failed(400, bad);
  if (text.length > TEXT_UNITS_MAX) return failed(400, "Bad Request: message is too long");
  const chat_id = chatOf(parameters);
  const wait = takeTurn(state, chat_id);
  if (wait > 0) return tooMany(Math.ceil(wait / 1000));
  const at = state.clock.now();
  const { text: shown, marks } = renderTelegram(text);
  state.messages.add({ chat_id, text, shown, marks, at });
  return done({
    message_id: state.messages.total,
    date: Math.floor(at / 1000),
    chat: { id: Number(chat_id), type: "supergroup" },
    text,
  });
}
