import type { Click, Dispatch } from "./network.ts";

/** Matches control characters other than tab and line feed, and the marks that turn the direction of text around. */
const INVISIBLE = /(?![\t\n])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

export const ELLIPSIS = "…";

/** Matches visible ASCII with single spaces, which needs no change; most clicked links are of this form. */
const PLAIN_LINE = /^[!-~]+(?: [!-~]+)*$/;

/**
 * Returns text that any network accepts: without control characters and halves of surrogate pairs, and with line feeds
 * as line breaks.
 */
export function plainText(text: string): string {
  return text.toWellFormed().replace(/\r\n?/g, "\n").replace(INVISIBLE, "");
}

/**
 * Returns text that any network accepts, on one line, so that a value cannot pose as further lines of the message
 * around it.
 */
export function oneLine(text: string): string {
  if (PLAIN_LINE.test(text)) return text;
  return plainText(text).replace(/\s+/g, " ").trim();
}

/** Shortens text to `maxUnits` UTF-16 units, never to half a character. An ellipsis marks what was cut off. */
export function truncate(text: string, maxUnits: number): string {
  if (text.length <= maxUnits) return text;
  const cut = text.slice(0, maxUnits - ELLIPSIS.length);
  return cut.replace(/[\ud800-\udbff]$/, "") + ELLIPSIS;
}

/**
 * Maximum number of UTF-16 units of a network's words that are kept: enough to see what it complains about. Details are
 * stored with events for ever.
 */
const EXCERPT_UNITS_MAX = 200;

/**
 * Matches text that looks like a value rather than a word: text in brackets or quotes (as networks show the offending
 * value), handles and addresses, long numbers, anything of 20 characters without a space.
 */
const VALUES = /\[[^\]]*\]|"[^"]*"|[\w.+-]{0,64}@[\w.-]+|\d{5,}|[\w.~+/:=%-]{20,}/g;

/** Returns a network's own words, fit for the log: one short line without credentials, ids or names of people. */
export function excerpt(text: string): string {
  // Cuts the text before matching as well, because an answer may be 64 KB of anything.
  return truncate(oneLine(text.slice(0, 10 * EXCERPT_UNITS_MAX)).replace(VALUES, "[…]"), EXCERPT_UNITS_MAX);
}

/** Formatting characters of WhatsApp and Google Chat, each with a look-alike that formats nothing. */
const LOOK_ALIKES: Readonly<Record<string, string>> = { "*": "∗", _: "ˍ", "~": "∼", "`": "ˋ" };

/**
 * Matches text that WhatsApp and Google Chat turn into a link, with a scheme or without. Nothing is formatted inside
 * it.
 */
const LINK = /(https?:\/\/\S+|(?<![\p{L}\d])(?:[\p{L}\d-]+\.)+\p{L}{2,}\/\S*)/iu;

/**
 * Matches the marker by which WhatsApp and Google Chat show a line as a quotation, with a bar beside it. The marker is
 * replaced, so that the line shows as written.
 */
const QUOTE = /^>(?= )/gm;

/** Matches the beginning of a line that WhatsApp and Google Chat show as an item of a list. */
const BULLET = /^(\s*)([*-])(?= )/gm;

const BULLETS: Readonly<Record<string, string>> = { "*": "∗", "-": "‐" };

/**
 * Returns text that a network without an escape character shows as written. Repeated markers become similar visible
 * characters of one UTF-16 unit, because apps may treat invisible ones in any way. Single markers and links stay.
 */
export function withLookAlikes(text: string): string {
  const unquoted = text
    .replace(QUOTE, "›")
    .replace(BULLET, (_line, indent: string, mark: string) => indent + (BULLETS[mark] ?? mark));
  const repeated = Object.keys(LOOK_ALIKES).filter((marker) => unquoted.split(marker).length > 2);
  // `split` returns the links as every second piece, because the expression has a capture group.
  const pieces = unquoted.split(LINK).map((piece, at) => (at % 2 === 1 ? piece : disarm(piece, repeated)));
  return pieces.join("");
}

function disarm(text: string, markers: readonly string[]): string {
  return text.replace(/[*_~`]/g, (marker) => (markers.includes(marker) ? (LOOK_ALIKES[marker] ?? marker) : marker));
}

/**
 * Words a dispatch for people, as plain text. Leaves out the visitor's address, which the chat's readers do not need,
 * and which `forget` and `RETENTION_DAYS` could not delete from a chat.
 */
export function wordDispatch(dispatch: Dispatch): string {
  if (dispatch.kind === "click") return wordClick(dispatch);
  if (dispatch.kind === "digest") return wordDigest(dispatch);
  if (dispatch.kind === "message") return plainText(dispatch.text);
  if (dispatch.kind === "test") return `reachlog test message of ${dispatch.time}: this channel works.`;
  if (dispatch.kind === "event" || dispatch.kind === "conversion")
    throw new TypeError(`no text says a dispatch of the kind ${dispatch.kind}`);
  return `[${oneLine(dispatch.level).toUpperCase()}] ${oneLine(dispatch.service)}: ${plainText(dispatch.message)}`;
}

/** Maximum number of links that a digest names one by one. Of the other links it states only how many there are. */
const DIGEST_LINKS_MAX = 20;

function wordDigest({ clicks, bots, links }: Extract<Dispatch, { kind: "digest" }>): string {
  const named = links.slice(0, DIGEST_LINKS_MAX);
  const rest = links.slice(DIGEST_LINKS_MAX).reduce((sum, link) => sum + link.clicks, 0);
  return [
    `${clicks} link events${byBots(bots)} came faster than they can be announced one by one:`,
    ...named.map(
      (link) =>
        `${oneLine(link.domain)}/${oneLine(link.shortCode)}: ${link.clicks}${byBots(link.bots)}, from ${link.first} to ${link.last}`,
    ),
    ...(rest === 0 ? [] : [`${links.length - named.length} more links: ${rest}`]),
  ].join("\n");
}

function byBots(bots: number): string {
  return bots === 0 ? "" : ` (${bots} by bots)`;
}

/** Cached wording of each click, because the chat and the messaging channel announce the same clicks. */
const words = new WeakMap<Click, string>();

function wordClick(click: Click): string {
  const known = words.get(click);
  if (known !== undefined) return known;
  const lines = [
    `Link event: ${oneLine(click.event)}${click.bot ? " (by a bot)" : ""}`,
    `Link: ${oneLine(click.domain)}/${oneLine(click.shortCode)}`,
    `Target: ${oneLine(click.originalUrl)}`,
    ...(click.userAgent === undefined ? [] : [`User agent: ${oneLine(click.userAgent)}`]),
    `Time: ${click.time}`,
  ];
  const text = lines.join("\n");
  words.set(click, text);
  return text;
}
