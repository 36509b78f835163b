import type { Click, Dispatch } from "./network.ts";
import { oneLine, plainText } from "./plain-text.ts";

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
