import { Type } from "@sinclair/typebox";
import { VERSION } from "../../platform/version.ts";
import { type AnswerRules, retryAfterMs, parseRetryAfter, parseAnswer } from "../classify-answer.ts";
import type { Channel } from "../network.ts";
import { ELLIPSIS, excerpt } from "../sanitize-and-truncate-text.ts";
import { USER_AGENT } from "../safe-fetch.ts";
import { createWebhookChannel, type WebhookOptions } from "./webhook.ts";

/** Message flag with which Discord visits no link of the message, and shows no preview. */
const SUPPRESS_EMBEDS = 1 << 2;

/**
 * User agent in the form that Discord requires, to which more may be appended:
 * https://docs.discord.com/developers/reference#user-agent
 */
const DISCORD_USER_AGENT = `DiscordBot (reachlog, ${VERSION}) ${USER_AGENT}`;

/**
 * API version that messages are sent to. The address that Discord shows names no version, which means the sixth, whose
 * pauses are in milliseconds. https://docs.discord.com/developers/reference#api-versioning
 */
const WEBHOOKS = "/api/v10/webhooks/";

/** Creates the chat channel for a Discord webhook. The webhook's address may name a thread in its query. */
export function createDiscordChannel(options: WebhookOptions): Channel {
  return createWebhookChannel(options, {
    network: "discord",
    answers: DISCORD_ANSWERS,
    headers: { "content-type": "application/json", "user-agent": DISCORD_USER_AGENT },
    formatMessage: (text) =>
      JSON.stringify({ content: discordText(text), allowed_mentions: { parse: [] }, flags: SUPPRESS_EMBEDS }),
    toPostUrl(webhookUrl) {
      const url = versioned(webhookUrl);
      // Without `wait`, Discord answers before it has saved the message, and a failure to save it shows nowhere.
      url.searchParams.set("wait", "true");
      return url.href;
    },
    probe: (webhookUrl) => ({ url: versioned(webhookUrl).href, method: "GET" }),
    isAlive: ({ status }) => status === 200,
    alive: "the webhook is alive",
  });
}

function versioned(webhookUrl: string): URL {
  const url = new URL(webhookUrl);
  url.pathname = url.pathname.replace(/\/api(?:\/v\d+)?\/webhooks\//, WEBHOOKS);
  return url;
}

/** Schema of Discord's answer to a sent message, whose id is a number of 64 bits, written as text. */
const SENT = Type.Object({ id: Type.String({ pattern: "^[0-9]{1,20}$" }) });

const REFUSED = Type.Object({ code: Type.Integer(), message: Type.String() });

/** Schema of Discord's rate-limit answer; `retry_after` is in seconds, with fractions. */
const LIMITED = Type.Object({ retry_after: Type.Number() });

const CHANNEL_STATUSES: ReadonlySet<number> = new Set([401, 403, 404]);

/**
 * Discord's codes in a 400 that every message of the channel would get, whatever its text: a locked or archived thread,
 * or a forum that requires a thread; https://docs.discord.com/developers/topics/opcodes-and-status-codes#json
 */
const CHANNEL_CODES: ReadonlySet<number> = new Set([10_003, 10_015, 50_027, 50_083, 160_005, 220_001]);

/**
 * How Discord's answers are read. Discord does not recognise a repeat, and only the message in the answer (`wait=true`)
 * proves that it was saved. https://docs.discord.com/developers/topics/rate-limits
 */
export const DISCORD_ANSWERS: AnswerRules = {
  accepted({ status, text, headers }) {
    const sent = status === 200 ? parseAnswer(SENT, text) : undefined;
    return sent === undefined ? undefined : { networkId: sent.id, pauseMs: pauseAfter(headers) };
  },
  describe({ status, text }) {
    const refused = parseAnswer(REFUSED, text);
    return `Discord answered ${status}${refused === undefined ? "" : `, error ${refused.code} ${excerpt(refused.message)}`}`;
  },
  refusesChannel({ status, text }) {
    return CHANNEL_STATUSES.has(status) || CHANNEL_CODES.has(parseAnswer(REFUSED, text)?.code ?? 0);
  },
  // The body states the wait with fractions of a second. An answer without a body comes from a proxy in front of
  // Discord, which states it in a header.
  retryAfterMs: ({ text, headers }) =>
    retryAfterMs(parseAnswer(LIMITED, text)?.retry_after) ?? parseRetryAfter(headers),
};

/**
 * Returns the wait until Discord's next rate-limit window, if this message was the last for which the present one has
 * room.
 */
function pauseAfter(headers: Headers): number | undefined {
  const isLast = headers.get("x-ratelimit-remaining") === "0";
  return isLast ? retryAfterMs(headers.get("x-ratelimit-reset-after")) : undefined;
}

/**
 * Maximum length of a Discord message, counted in UTF-16 units, which are never fewer than characters;
 * https://docs.discord.com/developers/resources/webhook#execute-webhook
 */
const CONTENT_UNITS_MAX = 2_000;

/**
 * Matches an address that Discord links as a whole and shows unchanged: only characters of RFC 3986 with which no
 * syntax of Discord's begins inside an address. A word with any other character is escaped instead.
 */
const LINK = /^https?:\/\/[\w\-.~:/?#@!$&()*+,;=%]*[\w\-~/#@$&*+=%]$/i;

/**
 * Matches characters that begin Discord's formatting, mentions, emoji, masked links and bare addresses at any place.
 */
const MARKERS = /[\\*_~|`<>[\]()#@:]/g;

/**
 * Matches the beginning of a line that Discord turns into a list item or small print. The last character of the match
 * is escaped.
 */
const LINE_MARKER = /^(\d+(?=\.)|(?=[-+]))([-+.])/;

/**
 * Returns text from outside as Discord content that shows as it was written: a backslash escapes each mark. A text that
 * is too long ends in an ellipsis. Neither characters nor escapes are cut, and no part of an address becomes a link.
 */
export function discordText(text: string): string {
  const words = text.split(/(\s+)/);
  const pieces = words.map((word, at) => (LINK.test(word) ? word : escapeWord(word, isFirst(words, at))));
  const whole = pieces.join("");
  if (whole.length <= CONTENT_UNITS_MAX) return whole;
  let shown = "";
  for (const [at, piece] of pieces.entries()) {
    if (shown.length + piece.length > CONTENT_UNITS_MAX - ELLIPSIS.length) {
      return cut(shown, escapeWord(words[at] ?? "", isFirst(words, at)));
    }
    shown += piece;
  }
  return shown;
}

/** Appends as much of an escaped word to a Discord message as there is room for, and an ellipsis. */
function cut(shown: string, escaped: string): string {
  for (const [character] of escaped.matchAll(/\\?[^]/gu)) {
    if (shown.length + character.length > CONTENT_UNITS_MAX - ELLIPSIS.length) break;
    shown += character;
  }
  return shown + ELLIPSIS;
}

/** True if the word begins a line. `words` alternates between words and the white space between them. */
function isFirst(words: readonly string[], at: number): boolean {
  return at === 0 || (words[at - 1] ?? "").includes("\n") || (at === 2 && words[0] === "");
}

function escapeWord(word: string, first: boolean): string {
  const escaped = word.replace(MARKERS, "\\$&");
  return first ? escaped.replace(LINE_MARKER, "$1\\$2") : escaped;
}
