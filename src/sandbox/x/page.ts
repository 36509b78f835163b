import { HttpResponse } from "msw";
import { invalidParameter } from "./answers.ts";

/** What `max_results` may be. */
export interface PageSize {
  readonly least: number;
  readonly most: number;
  readonly usual: number;
}

interface Body {
  readonly data: readonly unknown[];
  readonly includes?: Readonly<Record<string, unknown>>;
  /** Beside what every page tells. */
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** X forgets where a page ended; after how long it does not say. */
const TOKEN_LIFETIME_MS = 7 * 24 * 3_600_000;

/** A list of which one page is wanted. */
export interface Listing<T> {
  readonly url: URL;
  readonly now: number;
  readonly all: readonly T[];
  readonly size: PageSize;
}

/**
 * One page of a list, its size and place taken from the query. An empty page has no `data` at all. A token is good for
 * the list that it came from, and goes on behind the entry it came with, whatever was added before that.
 */
export function paged<T extends { readonly id: string }>(
  { url, now, all, size: { least, most, usual } }: Listing<T>,
  show: (page: readonly T[]) => Body,
): Response {
  const query = url.searchParams;
  const asked = query.get("max_results") ?? String(usual);
  const size = Number(asked);
  if (!Number.isInteger(size) || size < least || size > most) {
    return invalidParameter("max_results", asked, `is not between ${least} and ${most}`);
  }
  const name = query.has("next_token") ? "next_token" : "pagination_token";
  const token = query.get(name);
  const start = token === null ? 0 : startOf(token, all, listOf(url), now);
  if (start === undefined) return invalidParameter(name, token ?? "", "is not valid");
  const page = all.slice(start, start + size);
  const last = page.at(-1);
  const isEnd = last === undefined || start + size >= all.length;
  const next = isEnd
    ? {}
    : { next_token: tokenOf({ list: listOf(url), after: last.id, until: now + TOKEN_LIFETIME_MS }) };
  const { meta: more, ...shown } = page.length === 0 ? {} : show(page);
  return HttpResponse.json({ ...shown, meta: { ...more, result_count: page.length, ...next } });
}

/** What a token says, which to its bearer is a text without meaning. */
interface Place {
  readonly list: string;
  /** The last entry of the page it came with. */
  readonly after: string;
  readonly until: number;
}

function tokenOf(place: Place): string {
  return Buffer.from(JSON.stringify(place)).toString("base64url");
}

function startOf(
  token: string,
  all: readonly { readonly id: string }[],
  list: string,
  now: number,
): number | undefined {
  const place = placeOf(token);
  if (place?.list !== list || now >= place.until) return undefined;
  const at = all.findIndex(({ id }) => id === place.after);
  return at < 0 ? undefined : at + 1;
}

function placeOf(token: string): Place | null | undefined {
  try {
    return JSON.parse(Buffer.from(token, "base64url").toString()) as Place | null;
  } catch {
    return undefined;
  }
}

/** Which list a request asks for: its path, and what of its query chooses entries. */
function listOf({ pathname, searchParams }: URL): string {
  return `${pathname} ${searchParams.get("query") ?? ""} ${searchParams.get("event_types") ?? ""}`;
}
