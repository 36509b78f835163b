import type { Recipient } from "../../../events/outreach.ts";

/** A person by all that the event knows of them. */
export function nameOf({ id, username }: Recipient): string {
  if (username === undefined) return id ?? "somebody";
  return id === undefined ? `@${username}` : `@${username} (${id})`;
}

/** A text of others, set apart from our own words by its quotes; line breaks and quotes in it are escaped. */
export function quoted(text: string): string {
  return JSON.stringify(text);
}

/** A word of a closed set, such as `recipient_closed`, as people write it. */
export function plain(word: string): string {
  return word.replaceAll("_", " ");
}

/** Behind a colon, where there is something to say. */
export function because(detail: string | undefined): string {
  return detail === undefined || detail === "" ? "" : `: ${quoted(detail)}`;
}
