import { randomUUID } from "node:crypto";
import type { WindowState } from "../rate-limits.ts";
import { bearerOf } from "../read-request.ts";
import { forbiddenScope, tooManyRequests, unauthorized } from "./error-answers.ts";
import type { Grant, XState } from "./state.ts";

const QUARTER_HOUR_MS = 15 * 60_000;
const DAY_MS = 24 * 3_600_000;

/** Conditions under which an endpoint of X answers a request. */
export interface Terms {
  /** Name of the endpoint for its limits. Endpoints with the same name share them. */
  readonly endpoint: string;
  readonly scopes: readonly string[];
  /** Maximum number of requests per 15 minutes. */
  readonly limit: number;
  /** Maximum number of requests per 24 hours; absent if X has no such limit for the endpoint. */
  readonly dayLimit?: number;
}

/**
 * Checks the token, its scopes and the limits, then calls the endpoint. Every answer of the endpoint counts toward the
 * limits and has their headers, even a refusal.
 */
export async function guarded(
  state: XState,
  request: Request,
  terms: Terms,
  answer: (grant: Grant) => Response | Promise<Response>,
): Promise<Response> {
  const grant = grantOf(state, request);
  if (grant === undefined) return unauthorized();
  if (!terms.scopes.every((scope) => grant.scopes.includes(scope))) return forbiddenScope();
  const { allowed, headers } = count(state, terms, grant);
  const response = allowed ? await answer(grant) : tooManyRequests();
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}

function grantOf(state: XState, request: Request): Grant | undefined {
  const grant = state.access.get(bearerOf(request));
  if (grant === undefined || state.clock.now() >= grant.expiresAt) return undefined;
  return state.revokedFamilies.has(grant.family) ? undefined : grant;
}

function count({ windows, clock, limits }: XState, { endpoint, limit, dayLimit }: Terms, { userId }: Grant) {
  const now = clock.now();
  const key = `${endpoint} ${userId}`;
  const quarter = windows.take(key, limit, QUARTER_HOUR_MS, now);
  // A request that exceeds the limit for 15 minutes does not count toward the limit for 24 hours.
  const cost = quarter.allowed ? 1 : 0;
  const day = dayLimit === undefined ? undefined : windows.take(`day ${key}`, dayLimit, DAY_MS, now, cost);
  return {
    allowed: quarter.allowed && day?.allowed !== false,
    headers: { "x-transaction-id": randomUUID(), ...(limits.rateHeaders ? rateHeaders(quarter, day) : {}) },
  };
}

function rateHeaders(quarter: WindowState, day: WindowState | undefined): Record<string, string> {
  const named = (prefix: string, { limit, remaining, resetAt }: WindowState) => ({
    [`${prefix}-limit`]: String(limit),
    [`${prefix}-remaining`]: String(remaining),
    [`${prefix}-reset`]: String(Math.ceil(resetAt / 1000)),
  });
  const ofDay = day === undefined ? {} : { ...named("x-user-limit-24hour", day), ...named("x-app-limit-24hour", day) };
  return { ...named("x-rate-limit", quarter), ...ofDay };
}
