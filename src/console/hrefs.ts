import type { Recipient } from "../../events/outreach.ts";
import { markOfErased } from "../../events/encryption.ts";

export function eventHref(position: number): `/${string}` {
  return `/activity/${position}`;
}

export function linkHref(domain: string, shortCode: string): `/${string}` {
  return `/links/${encodeURIComponent(domain)}/${encodeURIComponent(shortCode)}`;
}

/** The page of the link `domain/short_code`. The short code begins behind the first slash, and may hold others. */
export function hrefForLink(link: string): `/${string}` {
  const slash = link.indexOf("/");
  return linkHref(link.slice(0, slash), link.slice(slash + 1));
}

/** The page of a recipient; undefined: nothing is left to find them by. */
export function recipientHref(recipient: Recipient): `/${string}` | undefined {
  const { id, username } = recipient;
  if (isErased(recipient)) return undefined;
  if (id !== undefined) return `/people/${encodeURIComponent(id)}`;
  return username === undefined ? undefined : `/people/@${encodeURIComponent(username)}`;
}

/** Whether the event's recipient was erased since. */
export function isErased({ id }: Recipient): boolean {
  return id !== undefined && markOfErased(id) !== undefined;
}

export function runHref(runId: string): `/${string}` {
  return `/runs/${encodeURIComponent(runId)}`;
}
