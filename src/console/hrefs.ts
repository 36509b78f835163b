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

/**
 * The address of a page with what this page was asked for. `changes`: what is different there; undefined or empty: it is
 * left out. The moment is kept by the page, and what is not filled in says nothing. An empty `path` is this page's.
 */
export function addressWith(
  path: string,
  query: URLSearchParams,
  changes: Readonly<Record<string, string | readonly string[] | undefined>>,
): string {
  const kept = [...query].filter(([name, value]) => value !== "" && name !== "as_of" && !(name in changes));
  const changed = Object.entries(changes).flatMap(([name, value = []]) => [value].flat().map((one) => [name, one]));
  const all = new URLSearchParams([...kept, ...changed] as [string, string][]);
  return all.size === 0 && path !== "" ? path : `${path}?${all}`;
}
