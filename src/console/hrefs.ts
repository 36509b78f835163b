import type { Recipient } from "../../events/outreach.ts";
import { markOfErased } from "../../events/encryption.ts";

export function eventHref(position: number): `/${string}` {
  return `/activity/${position}`;
}

export function linkHref(domain: string, shortCode: string): `/${string}` {
  return `/links/${encodeURIComponent(domain)}/${encodeURIComponent(shortCode)}`;
}

/** The page of the link `domain/short_code`. The short code begins after the first slash, and may hold others. */
export function hrefForLink(link: string): `/${string}` {
  const slash = link.indexOf("/");
  return linkHref(link.slice(0, slash), link.slice(slash + 1));
}

/** The page of a recipient. Undefined if they were erased, or have neither id nor handle. */
export function recipientHref(recipient: Recipient): `/${string}` | undefined {
  const { id, username } = recipient;
  if (isErased(recipient)) return undefined;
  if (id !== undefined) return `/people/${encodeURIComponent(id)}`;
  return username === undefined ? undefined : `/people/@${encodeURIComponent(username)}`;
}

/** True if the event's recipient was erased since. */
export function isErased({ id }: Recipient): boolean {
  return id !== undefined && markOfErased(id) !== undefined;
}

export function runHref(runId: string): `/${string}` {
  return `/runs/${encodeURIComponent(runId)}`;
}

/**
 * The address of a page with the parameters of this page, except empty ones and the moment, which the page adds. An
 * empty `path` is this page's.
 */
export function addressWith(
  path: string,
  query: URLSearchParams,
  /** Parameters with other values; one that is undefined or an empty list is left out. */
  changes: Readonly<Record<string, string | readonly string[] | undefined>>,
): string {
  const kept = [...query].filter(([name, value]) => value !== "" && name !== "as_of" && !(name in changes));
  const changed = Object.entries(changes).flatMap(([name, value = []]) => [value].flat().map((one) => [name, one]));
  const all = new URLSearchParams([...kept, ...changed] as [string, string][]);
  return all.size === 0 && path !== "" ? path : `${path}?${all}`;
}

/** A path of a console page. Operations of the API, anchors and other sites do not match. */
const PAGE = /^\/(?!\/|api\/|social\/)/;

/** Returns the address of a page as of a moment; other addresses unchanged. */
export function hrefAt<Href extends string>(href: Href, asOf: string): Href | `/${string}` {
  if (!PAGE.test(href)) return href;
  const { pathname, searchParams, hash } = new URL(href, "http://console");
  searchParams.set("as_of", asOf);
  return `/${pathname.slice(1)}?${searchParams}${hash}`;
}
