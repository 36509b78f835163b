/** A limit on requests, and what is left of it. */
export interface Allowance {
  readonly limit: number;
  readonly windowSeconds: number;
  readonly left: number;
  /** Until the limit is whole again. */
  readonly seconds: number;
}

type Headers = Record<string, string | number | undefined>;

/** Tells one more limit in `RateLimit-Policy` and `RateLimit` (IETF draft), or tells it anew. */
export function setRateLimitHeaders(
  headers: Headers,
  name: string,
  { limit, windowSeconds, left, seconds }: Allowance,
): void {
  headers["ratelimit-policy"] = withItem(headers["ratelimit-policy"], name, `q=${limit};w=${windowSeconds}`);
  headers["ratelimit"] = withItem(headers["ratelimit"], name, `r=${left};t=${seconds}`);
}

/** Tells a limit as it is before something is done that uses it up, for refusals, and as it is after. */
export async function withRateLimitHeaders<T>(
  headers: Headers,
  name: string,
  allowance: () => Allowance,
  act: () => Promise<T>,
): Promise<T> {
  setRateLimitHeaders(headers, name, allowance());
  const done = await act();
  setRateLimitHeaders(headers, name, allowance());
  return done;
}

/** A list of items as the header holds it; an item of the same name is replaced. */
function withItem(list: string | number | undefined, name: string, parameters: string): string {
  const others =
    list === undefined
      ? []
      : String(list)
          .split(", ")
          .filter((item) => !item.startsWith(`"${name}";`));
  return [...others, `"${name}";${parameters}`].join(", ");
}
