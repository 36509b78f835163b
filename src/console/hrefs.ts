import { isErased } from "../history/event-sentences.ts";

/** The names by which events and pages know a recipient. */
export interface RecipientNames {
  readonly id?: string | undefined;
  readonly username?: string | undefined;
}

export function eventHref(position: number): `/${string}` {
  return `/activity/${position}`;
}

export function linkHref(domain: string, shortCode: string): `/${string}` {
  return `/links/${encodeURIComponent(domain)}/${encodeURIComponent(shortCode)}`;
}

/**
 * Returns the address of the page of the link `domain/short_code`. The short code begins after the first slash, and may
 * hold more slashes.
 */
export function hrefForLink(link: string): `/${string}` {
  const slash = link.indexOf("/");
  return linkHref(link.slice(0, slash), link.slice(slash + 1));
}

/** Returns the address of a recipient's page. Undefined if they were erased, or have neither id nor handle. */
export function recipientHref(recipient: RecipientNames): `/${string}` | undefined {
  const { id, username } = recipient;
  if (isErased(recipient)) return undefined;
  if (id !== undefined) return `/people/${encodeURIComponent(id)}`;
  return username === undefined ? undefined : `/people/@${encodeURIComponent(username)}`;
}

export function campaignHref(name: string): `/${string}` {
  return `/campaigns/${encodeURIComponent(name)}`;
}

export function runHref(runId: string): `/${string}` {
  return `/runs/${encodeURIComponent(runId)}`;
}

/**
 * Parameters of the present page's address that its links do not copy. The page itself adds `as_of` to all links if it
 * shows a past moment, and `confirm` shows a confirmation only once.
 */
const ADDED = ["as_of", "confirm"];

export function dryRunHref(runId: string): `/${string}` {
  return `/runs/dry/${encodeURIComponent(runId)}`;
}

/**
 * Returns the address of `path` with the present page's parameters, changed by `changes`. Leaves out empty ones, and
 * the moment, which the page adds to all links. An empty `path` means the present page.
 */
export function addressWith(
  path: string,
  query: URLSearchParams,
  /** Parameters to set; one that is undefined or an empty list is removed. */
  changes: Readonly<Record<string, string | readonly string[] | undefined>>,
): string {
  const kept = [...query].filter(([name, value]) => value !== "" && !ADDED.includes(name) && !(name in changes));
  const changed = Object.entries(changes).flatMap(([name, value = []]) => [value].flat().map((one) => [name, one]));
  const all = new URLSearchParams([...kept, ...changed] as [string, string][]);
  return all.size === 0 && path !== "" ? path : `${path}?${all}`;
}

/** Regular expression of the paths of console pages. Operations of the API, anchors and other sites do not match. */
const PAGE = /^\/(?!\/|api\/|social\/)/;

/** Returns the address of a console page with the moment that it is to show. Other addresses are returned unchanged. */
export function hrefAt<Href extends string>(href: Href, asOf: string): Href | `/${string}` {
  if (!PAGE.test(href)) return href;
  const { pathname, searchParams, hash } = new URL(href, "http://console");
  searchParams.set("as_of", asOf);
  return `/${pathname.slice(1)}?${searchParams}${hash}`;
}
