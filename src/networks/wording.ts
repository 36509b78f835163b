import type { Dispatch } from "./network.ts";
import { oneLine, plainText } from "./plain-text.ts";

/**
 * A dispatch in words for people, as plain text. The visitor's address is left out on purpose: it is personal data,
 * a chat keeps it outside the reach of `forget` and `RETENTION_DAYS`, and nobody in a chat can act on it.
 */
export function wordDispatch(dispatch: Dispatch): string {
  if (dispatch.kind === "click") return wordClick(dispatch);
  if (dispatch.kind === "message") return plainText(dispatch.text);
  if (dispatch.kind === "test") return `reachlog test message of ${dispatch.time}: this channel works.`;
  return `[${oneLine(dispatch.level).toUpperCase()}] ${oneLine(dispatch.service)}: ${plainText(dispatch.message)}`;
}

function wordClick(click: Extract<Dispatch, { kind: "click" }>): string {
  const lines = [
    `Link event: ${oneLine(click.event)}${click.bot ? " (by a bot)" : ""}`,
    `Link: ${oneLine(click.domain)}/${oneLine(click.shortCode)}`,
    `Target: ${oneLine(click.originalUrl)}`,
    ...(click.userAgent === undefined ? [] : [`User agent: ${oneLine(click.userAgent)}`]),
    `Time: ${click.time}`,
  ];
  return lines.join("\n");
}
