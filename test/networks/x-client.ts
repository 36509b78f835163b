import { SocialError } from "../../src/networks/network.ts";
import type { SafeFetch } from "../../src/networks/safe-fetch.ts";
import { createX } from "../../src/networks/x/x-api.ts";
import { safeFetchTo } from "../harness/in-process/local-test-servers.ts";

export const NOW = Date.parse("2026-11-20T10:00:00.000Z");
export const TOKEN = "user-token";

/**
 * Creates a client for X. `timeoutMs` is for tests of a server that does not answer, which should not wait for the
 * usual seconds.
 */
export function xAt(apiUrl: string, timeoutMs?: number) {
  const real = safeFetchTo(apiUrl);
  const safeFetch: SafeFetch = timeoutMs === undefined ? real : (url, request) => real(url, { ...request, timeoutMs });
  return createX({ apiUrl, safeFetch, clock: () => NOW });
}

export async function thrownBy(work: Promise<unknown>): Promise<SocialError> {
  const thrown: unknown = await work.then(
    () => undefined,
    (fault: unknown) => fault,
  );
  if (!(thrown instanceof SocialError)) throw new Error("a SocialError was expected");
  return thrown;
}

/** Returns JSON with every non-ASCII character escaped, the longest form in which X may send it. */
export function escapedJson(value: unknown): string {
  const hex = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[\u0080-\uffff]/g, hex);
}
