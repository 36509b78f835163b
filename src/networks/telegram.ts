import { secret, type Secret } from "../platform/secret.ts";
import { checkOfFault, resultOfFault } from "./fault-result.ts";
import type { Channel } from "./network.ts";
import { JSON_BODY, type NetworkAnswer, type SafeFetch } from "./safe-fetch.ts";
import { classifyTelegramAnswer, describeTelegram, isDone, migratedTo } from "./telegram-answers.ts";
import { telegramText } from "./telegram-text.ts";
import { wordDispatch } from "./wording.ts";

export interface TelegramOptions {
  readonly botToken: Secret;
  readonly chatId: string;
  readonly baseUrl: string;
  readonly safeFetch: SafeFetch;
}

/** The Telegram Bot API as the messaging channel. Texts go out plain: no parse mode, so nothing in them is markup. */
export function createTelegramChannel(options: TelegramOptions): Channel {
  // A group's id changes when it becomes a supergroup; the new one holds until the process ends.
  let chatId = options.chatId;

  function call(method: string, parameters: object, timeoutMs: number): Promise<NetworkAnswer> {
    return options.safeFetch(`${options.baseUrl}/bot${options.botToken.reveal()}/${method}`, {
      method: "POST",
      headers: JSON_BODY,
      body: JSON.stringify(parameters),
      timeoutMs,
    });
  }

  function sendText(text: string, timeoutMs: number): Promise<NetworkAnswer> {
    return call("sendMessage", { chat_id: chatId, text, link_preview_options: { is_disabled: true } }, timeoutMs);
  }

  return {
    name: "messaging",
    network: "telegram",
    // Another chat may be what mends it.
    credential: secret(`${options.chatId}\n${options.botToken.reveal()}`),
    async send(dispatch, { timeoutMs }) {
      const text = telegramText(wordDispatch(dispatch));
      const startedAt = performance.now();
      try {
        const answer = await sendText(text, timeoutMs);
        const newChatId = migratedTo(answer);
        if (newChatId === undefined) return classifyTelegramAnswer(answer);
        chatId = newChatId;
        return classifyTelegramAnswer(await sendText(text, timeoutMs - (performance.now() - startedAt)));
      } catch (fault) {
        return resultOfFault(fault, { deduplicates: false });
      }
    },
    async check(timeoutMs) {
      const startedAt = performance.now();
      try {
        const bot = await call("getMe", {}, timeoutMs);
        if (!isDone(bot))
          return {
            ok: false,
            detail: `${describeTelegram(bot)}: check TELEGRAM_BOT_TOKEN`,
          };
        const chat = await call("getChat", { chat_id: chatId }, timeoutMs - (performance.now() - startedAt));
        if (!isDone(chat))
          return {
            ok: false,
            detail: `${describeTelegram(chat)}: check TELEGRAM_CHAT_ID`,
          };
        return { ok: true, detail: "the bot and its chat answer" };
      } catch (fault) {
        return checkOfFault(fault);
      }
    },
  };
}
