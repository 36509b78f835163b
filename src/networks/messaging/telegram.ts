import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { secret, type Secret } from "../../platform/secret.ts";
import {
  checked,
  toDispatchResult,
  type AnswerRules,
  retryAfterMs,
  parseRetryAfter,
  parseAnswer,
} from "../classify-answer.ts";
import type { Channel } from "../network.ts";
import { JSON_BODY, type NetworkAnswer, type SafeFetch } from "../safe-fetch.ts";
import { wordDispatch, excerpt, truncate } from "../sanitize-and-truncate-text.ts";

/**
 * Creates the messaging channel for the Telegram Bot API. Texts go out plain: no parse mode, so nothing in them is
 * markup.
 */
export function createTelegramChannel(options: {
  readonly botToken: Secret;
  readonly chatId: string;
  readonly baseUrl: string;
  readonly safeFetch: SafeFetch;
}): Channel {
  // A group's id changes when it becomes a supergroup. The new one is used until the process ends.
  let chatId = options.chatId;

  function call(method: string, parameters: object, timeoutMs: number): Promise<NetworkAnswer> {
    return options.safeFetch(`${options.baseUrl}/bot${options.botToken.reveal()}/${method}`, {
      method: "POST",
      headers: JSON_BODY,
      body: JSON.stringify(parameters),
      timeoutMs,
    });
  }

  async function sendText(text: string, timeoutMs: number): Promise<NetworkAnswer> {
    const startedAt = performance.now();
    const message = { text, link_preview_options: { is_disabled: true } };
    const answer = await call("sendMessage", { chat_id: chatId, ...message }, timeoutMs);
    const newChatId = migratedTo(answer);
    if (newChatId === undefined) return answer;
    chatId = newChatId;
    return call("sendMessage", { chat_id: chatId, ...message }, timeoutMs - (performance.now() - startedAt));
  }

  return {
    name: "messaging",
    network: "telegram",
    // The credential includes the chat, because a wrong chat suspends the channel, as a wrong token does, until the
    // chat is changed.
    credential: secret(`${options.chatId}\n${options.botToken.reveal()}`),
    send(dispatch, { timeoutMs }) {
      return toDispatchResult(sendText(telegramText(wordDispatch(dispatch)), timeoutMs), TELEGRAM_ANSWERS);
    },
    check: (timeoutMs) =>
      checked(async () => {
        const startedAt = performance.now();
        const bot = await call("getMe", {}, timeoutMs);
        if (doneIn(bot) === undefined)
          return { ok: false, detail: `${TELEGRAM_ANSWERS.describe(bot)}: check TELEGRAM_BOT_TOKEN` };
        const chat = await call("getChat", { chat_id: chatId }, timeoutMs - (performance.now() - startedAt));
        if (doneIn(chat) === undefined)
          return { ok: false, detail: `${TELEGRAM_ANSWERS.describe(chat)}: check TELEGRAM_CHAT_ID` };
        return { ok: true, detail: "the bot and its chat answer" };
      }),
  };
}

/**
 * Maximum length of a Telegram message. Telegram counts UTF-16 units: https://core.telegram.org/bots/api#sendmessage
 */
const TEXT_UNITS_MAX = 4096;

/**
 * Invisible character that takes no room and is not part of a name. Telegram does not join the text after it with the
 * text before it.
 */
const WORD_JOINER = "\u2060";

const LINK = /(https?:\/\/\S+)/iu;

/**
 * Matches what Telegram makes a mention, whose owner is notified, or a command, which a tap sends:
 * https://core.telegram.org/bots/api#messageentity. An ASCII letter before it prevents both; for other letters this is
 * not known.
 */
const MENTION = /(?<![A-Za-z0-9_])@(?=[A-Za-z0-9_])/g;
const COMMAND = /(?<![A-Za-z0-9_/<>])\/(?=[A-Za-z0-9_])/g;

/**
 * Returns text from outside that Telegram shows as it was written, without mentions. In an address the @ is
 * percent-encoded, which leads to the same page, and is no mention even if Telegram sees no address.
 */
export function telegramText(text: string): string {
  // `split` returns the links as every second piece, because the expression `LINK` has a capture group.
  const pieces = text.split(LINK).map((piece, at) => (at % 2 === 1 ? piece.replace(MENTION, "%40") : disarm(piece)));
  return truncate(pieces.join(""), TEXT_UNITS_MAX);
}

function disarm(text: string): string {
  return text.replace(MENTION, `@${WORD_JOINER}`).replace(COMMAND, `/${WORD_JOINER}`);
}

const DONE = Type.Object({ ok: Type.Literal(true), result: Type.Unknown() });
const SENT = Type.Object({ message_id: Type.Integer() });
const REFUSED = Type.Object({ ok: Type.Literal(false), description: Type.String() });
const RETRY = Type.Object({ parameters: Type.Object({ retry_after: Type.Number() }) });
const MIGRATED = Type.Object({ parameters: Type.Object({ migrate_to_chat_id: Type.Integer() }) });

/**
 * Statuses by which Telegram refuses every message of the channel: a revoked token, a bot that the user blocked, kicked
 * or never started, and an unknown bot.
 */
const CHANNEL_STATUSES: ReadonlySet<number> = new Set([401, 403, 404]);

/**
 * Matches Telegram's descriptions of 400s that blame the chat rather than the message. Nothing else tells them apart.
 */
const CHAT_AT_FAULT = /chat not found|chat_id|peer_id_invalid|chat was (upgraded|deleted)|rights|chat_write_forbidden/i;

/**
 * How Telegram's answers to `sendMessage` are read. Telegram does not recognise a repeat.
 * https://core.telegram.org/bots/api#making-requests
 */
export const TELEGRAM_ANSWERS: AnswerRules = {
  accepted(answer) {
    const done = doneIn(answer);
    if (done === undefined) return undefined;
    return Value.Check(SENT, done.result) ? { networkId: String(done.result.message_id) } : {};
  },
  describe: (answer) => `Telegram answered ${answer.status} ${excerpt(descriptionIn(answer))}`.trimEnd(),
  refusesChannel: (answer) =>
    CHANNEL_STATUSES.has(answer.status) || (answer.status === 400 && CHAT_AT_FAULT.test(descriptionIn(answer))),
  retryAfterMs: ({ text, headers }) =>
    retryAfterMs(parseAnswer(RETRY, text)?.parameters.retry_after) ?? parseRetryAfter(headers),
};

/**
 * Returns the new id of a Telegram chat if the answer says that the group became a supergroup. Nothing was sent then.
 */
function migratedTo({ status, text }: NetworkAnswer): string | undefined {
  const id = status === 400 ? parseAnswer(MIGRATED, text)?.parameters.migrate_to_chat_id : undefined;
  return id === undefined ? undefined : String(id);
}

/** Returns the body of an answer to a Telegram call that was carried out; undefined if it was not. */
function doneIn({ status, text }: NetworkAnswer) {
  return status === 200 ? parseAnswer(DONE, text) : undefined;
}

function descriptionIn({ text }: NetworkAnswer): string {
  return parseAnswer(REFUSED, text)?.description ?? "";
}
