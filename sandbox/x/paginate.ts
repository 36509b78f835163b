import { HttpResponse } from "msw";
import { ORIGINS } from "../network-origins-and-refusals.ts";
import { parseJson } from "../read-request.ts";
import { invalidParameter } from "./error-answers.ts";

/** Range and default of the query parameter `max_results`. */
export interface PageSize {
  readonly least: number;
  readonly most: number;
  readonly usual: number;
}

interface Body {
  readonly data: readonly unknown[];
  readonly includes?: Readonly<Record<string, unknown>>;
  /** Fields of `meta` that this list has in addition to those of every list. */
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** Lifetime of a page token in the sandbox. X does not document how long a token lives. */
const TOKEN_LIFETIME_MS = 7 * 24 * 3_600_000;

/** A list of entries, and the request for one of its pages. */
export interface Listing<T> {
  readonly url: URL;
  readonly now: number;
  readonly all: readonly T[];
  readonly size: PageSize;
  /**
   * Tokens on a page: `next`, or `both` for next and previous. `to_the_end`: both on each page with entries, even if
   * nothing follows, so that a client finds the end by an empty page.
   */
  readonly tokens: "next" | "both" | "to_the_end";
}

/**
 * Answers with one page of a list, by the request's size and token. An empty page has no `data`. A token works only for
 * its list, and continues after its entry even if entries were added before it.
 */
export function paged<T extends { readonly id: string }>(
  listing: Listing<T>,
  show: (page: readonly T[]) => Body,
): Response {
  const { url, now, all } = listing;
  const { least, most, usual } = listing.size;
  const query = url.searchParams;
  const asked = query.get("max_results") ?? String(usual);
  const size = Number(asked);
  if (!Number.isInteger(size) || size < least || size > most) {
    return invalidParameter("max_results", asked, `is not between ${least} and ${most}`);
  }
  const name = query.has("next_token") ? "next_token" : "pagination_token";
  const token = query.get(name);
  const range = token === null ? { start: 0, end: size } : rangeOf(token, all, { list: listOf(url), size, now });
  if (range === undefined) return invalidParameter(name, token ?? "", "is not valid");
  const page = all.slice(range.start, range.end);
  const { meta: more, ...shown } = page.length === 0 ? {} : show(page);
  return HttpResponse.json({ ...shown, meta: { ...more, result_count: page.length, ...tokensOf(listing, range) } });
}

interface Range {
  readonly start: number;
  readonly end: number;
}

function tokensOf({ url, now, all, tokens }: Listing<{ readonly id: string }>, { start, end }: Range) {
  const place = { list: listOf(url), until: now + TOKEN_LIFETIME_MS };
  const isEmpty = start >= Math.min(end, all.length);
  const goesOn = tokens === "to_the_end" ? !isEmpty : end < all.length;
  const comesBack = start > 0 || (tokens === "to_the_end" && !isEmpty);
  return {
    ...(goesOn ? { next_token: tokenOf({ ...place, after: all[Math.min(end, all.length) - 1]?.id ?? "" }) } : {}),
    ...(tokens !== "next" && comesBack
      ? { previous_token: tokenOf({ ...place, upTo: all[start - 1]?.id ?? "" }) }
      : {}),
  };
}

/** Returns the answer with a token that leads to the same page again, as from a network whose pages go in circles. */
export async function ledBack(answer: Response, path: string, now: number): Promise<Response> {
  const url = new URL(path.replace(/^\/x\//, "/"), ORIGINS.x);
  const body = (await answer.json().catch(() => ({}))) as { meta?: object };
  if (body.meta === undefined) return HttpResponse.json(body, { status: answer.status, headers: answer.headers });
  const asked = url.searchParams.get("pagination_token") ?? url.searchParams.get("next_token");
  const top = { list: listOf(url), after: "", until: now + TOKEN_LIFETIME_MS };
  const meta = { ...body.meta, next_token: asked ?? tokenOf(top) };
  return HttpResponse.json({ ...body, meta }, { status: answer.status, headers: answer.headers });
}

/** Content of a page token, which is opaque to clients. An empty id is the place before the first entry. */
type Place = { readonly list: string; readonly until: number } & (
  | { /** Id of the last entry on the page that came with the token. */ readonly after: string }
  | { /** Id of the last entry before the page that came with the token. */ readonly upTo: string }
);

function tokenOf(place: Place): string {
  return Buffer.from(JSON.stringify(place)).toString("base64url");
}

function rangeOf(
  token: string,
  all: readonly { readonly id: string }[],
  { list, size, now }: { list: string; size: number; now: number },
): Range | undefined {
  const place = parseJson(Buffer.from(token, "base64url").toString()) as Place | null | undefined;
  if (place?.list !== list || now >= place.until) return undefined;
  const entry = "after" in place ? place.after : place.upTo;
  const at = all.findIndex(({ id }) => id === entry);
  if (at < 0 && entry !== "") return undefined;
  return "after" in place ? { start: at + 1, end: at + 1 + size } : { start: Math.max(0, at + 1 - size), end: at + 1 };
}

/** Identifies the list that a request asks for: its path, and the query parameters that select entries. */
function listOf({ pathname, searchParams }: URL): string {
  return `${pathname} ${searchParams.get("query") ?? ""} ${searchParams.get("event_types") ?? ""}`;
}
