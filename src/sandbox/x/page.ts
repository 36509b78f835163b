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
}

/** One page of a list, its size and place taken from the query. An empty page has no `data` at all. */
export function paged<T>(
  query: URLSearchParams,
  all: readonly T[],
  { least, most, usual }: PageSize,
  show: (page: readonly T[]) => Body,
): Response {
  const asked = query.get("max_results") ?? String(usual);
  const size = Number(asked);
  if (!Number.isInteger(size) || size < least || size > most) {
    return invalidParameter("max_results", asked, `is not between ${least} and ${most}`);
  }
  const name = query.has("next_token") ? "next_token" : "pagination_token";
  const token = query.get(name);
  const start = token === null ? 0 : startOf(token);
  if (start === undefined) return invalidParameter(name, token ?? "", "is not valid");
  const page = all.slice(start, start + size);
  const meta = {
    result_count: page.length,
    ...(start + size < all.length ? { next_token: tokenOf(start + size) } : {}),
    ...(start > 0 ? { previous_token: tokenOf(Math.max(0, start - size)) } : {}),
  };
  return HttpResponse.json(page.length === 0 ? { meta } : { ...show(page), meta });
}

function tokenOf(start: number): string {
  return Buffer.from(`at ${start}`).toString("base64url");
}

function startOf(token: string): number | undefined {
  const start = /^at (\d{1,9})$/.exec(Buffer.from(token, "base64url").toString())?.[1];
  return start === undefined ? undefined : Number(start);
}
