import { truncate } from "./plain-text.ts";

/** Characters as Telegram counts them, which is in UTF-16 units; https://core.telegram.org/bots/api#sendmessage */
const TEXT_UNITS_MAX = 4096;

/** Takes no room, and is no part of a name: what stands behind it is not taken together with what stands before. */
const WORD_JOINER = "\u2060";

const LINK = /https?:\/\/\S+/giu;

/**
 * What Telegram makes a mention, whose owner is notified, or a command, which a tap sends, in any text:
 * https://core.telegram.org/bots/api#messageentity. A letter before it keeps both from being one; of letters beyond
 * ASCII it is not known which ones Telegram knows.
 */
const MENTION = /(?<![A-Za-z0-9_])@(?=[A-Za-z0-9_])/g;
const COMMAND = /(?<![A-Za-z0-9_/<>])\/(?=[A-Za-z0-9_])/g;

/**
 * Foreign text that mentions nobody and shows as it was written. In an address the sign is percent-encoded, which leads
 * to the same page, and is no mention either where Telegram sees no address.
 */
export function telegramText(text: string): string {
  let shown = "";
  let from = 0;
  for (const { index, 0: link } of text.matchAll(LINK)) {
    shown += disarm(text.slice(from, index)) + link.replace(MENTION, "%40");
    from = index + link.length;
  }
  return truncate(shown + disarm(text.slice(from)), TEXT_UNITS_MAX);
}

function disarm(text: string): string {
  return text.replace(MENTION, `@${WORD_JOINER}`).replace(COMMAND, `/${WORD_JOINER}`);
}
