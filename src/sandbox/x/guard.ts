import type { WindowState } from "../window.ts";
import { forbiddenScope, tooManyRequests, unauthorized } from "./answers.ts";
import type { Grant, XState } from "./state.ts";

const QUARTER_HOUR_MS = 15 * 60_000;
const DAY_MS = 24 * 3_600_000;

/** What an endpoint asks of its caller. */
export interface Terms {
  readonly endpoint: string;
  readonly scopes: readonly string[];
  /** Requests in 15 minutes. */
  readonly limit: number;
  /** Requests in 24 hours, where X counts them. */
  readonly dayLimit?: number;
}

export type Admitted =
  { readonly grant: Grant; readonly headers: Record<string, string> } | { readonly refused: Response };

/** Token, then scopes, then limits: as X, whose refusals for a missing scope do not count. */
export function admit(state: XState, request: Request, terms: Terms): Admitted {
  const grant = grantOf(state, request);
  if (grant === undefined) return { refused: unauthorized() };
  if (!terms.scopes.every((scope) => grant.scopes.includes(scope))) return { refused: forbiddenScope() };
  const now = state.clock.now();
  const key = `${terms.endpoint} ${grant.userId}`;
  const quarter = state.windows.take(key, terms.limit, QUARTER_HOUR_MS, now);
  const day = terms.dayLimit === undefined ? undefined : state.windows.take(`day ${key}`, terms.dayLimit, DAY_MS, now);
  const headers = state.limits.rateHeaders ? rateHeaders(quarter, day) : {};
  if (!quarter.allowed || day?.allowed === false) return { refused: tooManyRequests(headers) };
  return { grant, headers };
}

function grantOf(state: XState, request: Request): Grant | undefined {
  const token = /^Bearer (.+)$/i.exec(request.headers.get("authorization") ?? "")?.[1] ?? "";
  const grant = state.access.get(token);
  if (grant === undefined || state.clock.now() >= grant.expiresAt) return undefined;
  return state.revokedFamilies.has(grant.family) ? undefined : grant;
}

function rateHeaders(quarter: WindowState, day: WindowState | undefined): Record<string, string> {
  const named = (prefix: string, { limit, remaining, resetAt }: WindowState) => ({
    [`${prefix}-limit`]: String(limit),
    [`${prefix}-remaining`]: String(remaining),
    [`${prefix}-reset`]: String(Math.ceil(resetAt / 1000)),
  });
  if (day === undefined) return named("x-rate-limit", quarter);
  return {
    ...named("x-rate-limit", quarter),
    ...named("x-user-limit-24hour", day),
    ...named("x-app-limit-24hour", day),
  };
}
