import type { Click, Dispatch } from "./network.ts";

/** Control characters but tab and line feed, and the marks that turn the direction of text around. */
const INVISIBLE = /(?![\t\n])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

export const ELLIPSIS = "…";

/** Of visible ASCII, with single spaces in between: most of what is clicked, and nothing is to be done about it. */
const PLAIN_LINE = /^[!-~]+(?: [!-~]+)*$/;

/** Text that any network takes: no control characters, no half characters; line breaks stay, as line feeds. */
export function plainText(text: string): string {
  return text.toWellFormed().replace(/\r\n?/g, "\n").replace(INVISIBLE, "");
}

/** The same on one line, so that a value cannot pose as further lines of the message around it. */
export function oneLine(text: string): string {
  if (PLAIN_LINE.test(text)) return text;
  return plainText(text).replace(/\s+/g, " ").trim();
}

/** At most `maxUnits` UTF-16 units, never half a character; what was cut off is marked by an ellipsis. */
export function truncate(text: string, maxUnits: number): string {
  if (text.length <= maxUnits) return text;
  const cut = text.slice(0, maxUnits - ELLIPSIS.length);
  return cut.replace(/[\ud800-\udbff]$/, "") + ELLIPSIS;
}

/** Enough to see what a network complains of; details are stored with events for ever. */
const EXCERPT_UNITS_MAX = 200;

/**
 * What looks like a value rather than a word: text in brackets or quotes (networks show the offending value so),
 * handles and addresses, long numbers, anything of 20 characters without a space.
 */
const VALUES = /\[[^\]]*\]|"[^"]*"|[\w.+-]{0,64}@[\w.-]+|\d{5,}|[\w.~+/:=%-]{20,}/g;

/** A network's own words, fit for the log: one short line without credentials, ids or names of people. */
export function excerpt(text: string): string {
  // Cut before matching as well: the answer may be 64 KB of anything.
  return truncate(oneLine(text.slice(0, 10 * EXCERPT_UNITS_MAX)).replace(VALUES, "[…]"), EXCERPT_UNITS_MAX);
}

/** Formatting characters that two networks share, and what looks like each without being one. */
const LOOK_ALIKES: Readonly<Record<string, string>> = { "*": "∗", _: "ˍ", "~": "∼", "`": "ˋ" };

/** What these networks make a link of, with a scheme or without; inside of it nothing is formatted. */
const LINK = /(https?:\/\/\S+|(?<![\p{L}\d])(?:[\p{L}\d-]+\.)+\p{L}{2,}\/\S*)/iu;

/** At the beginning of a line a quotation, which shows as a bar beside what follows. */
const QUOTE = /^>(?= )/gm;

/** What makes an item of a list of a line that it begins. */
const BULLET = /^(\s*)([*-])(?= )/gm;

const BULLETS: Readonly<Record<string, string>> = { "*": "∗", "-": "‐" };

/**
 * Text that shows as it was written on a network that has no escape. What its apps make of invisible characters beside
 * a marker is nowhere stated, so markers become look-alikes; all of them are one unit, as the markers are. A marker
 * that stands alone formats nothing, and links have to stay what they are.
 */
export function withLookAlikes(text: string): string {
  const unquoted = text
    .replace(QUOTE, "›")
    .replace(BULLET, (_line, indent: string, mark: string) => indent + (BULLETS[mark] ?? mark));
  const repeated = Object.keys(LOOK_ALIKES).filter((marker) => unquoted.split(marker).length > 2);
  // By the group in the expression every second piece is a link.
  const pieces = unquoted.split(LINK).map((piece, at) => (at % 2 === 1 ? piece : disarm(piece, repeated)));
  return pieces.join("");
}

function disarm(text: string, markers: readonly string[]): string {
  return text.replace(/[*_~`]/g, (marker) => (markers.includes(marker) ? (LOOK_ALIKES[marker] ?? marker) : marker));
}

/**
 * A dispatch in words for people, as plain text. The visitor's address is left out on purpose: it is personal data,
 * a chat keeps it outside the reach of `forget` and `RETENTION_DAYS`, and is of no use to readers of a chat.
 */
export function wordDispatch(dispatch: Dispatch): string {
  if (dispatch.kind === "click") return wordClick(dispatch);
  if (dispatch.kind === "digest") return wordDigest(dispatch);
  if (dispatch.kind === "message") return plainText(dispatch.text);
  if (dispatch.kind === "test") return `reachlog test message of ${dispatch.time}: this channel works.`;
  if (dispatch.kind === "event") throw new TypeError("events of the log are for programs");
  return `[${oneLine(dispatch.level).toUpperCase()}] ${oneLine(dispatch.service)}: ${plainText(dispatch.message)}`;
}

/** Links named one by one in a digest; the rest is a number. */
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

/** Chat and messaging announce the same clicks. */
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
