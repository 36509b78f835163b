import type { Clock } from "../../platform/clock-ids-and-timers.ts";
import { SocialError, type PageRequest } from "../network.ts";
import { type SafeFetch, NetworkFault } from "../safe-fetch.ts";
import { readFailure } from "./interpret-answer.ts";

/** Time-out of a read from X; most of X's answers arrive within a second. */
const READ_TIMEOUT_MS = 10_000;

/**
 * Time-out of a large read from X. A page of the longest messages is 12 MB, which a slow line must be able to carry.
 */
const LARGE_READ_TIMEOUT_MS = 30_000;

/** Size of an answer, in bytes, above which a read from X has the longer time-out. */
const LARGE_BYTES = 1024 * 1024;

/** Maximum size of X's answer in addition to its entries, in bytes, including X's errors. */
export const FRAME_BYTES = 64 * 1024;

export interface XOptions {
  readonly apiUrl: string;
  readonly safeFetch: SafeFetch;
  readonly clock: Clock;
}

/**
 * Function that sends a GET request to X. Returns the body of a response with status 200, and throws a {@link
 * SocialError} for every other response.
 */
export type XRead = (question: {
  readonly path: string;
  /** Query of the request; undefined members are left out. */
  readonly query: Readonly<Record<string, string | undefined>>;
  /** Maximum size of a valid answer in bytes, if it may be larger than usual. */
  readonly answerBytesMax?: number;
}) => Promise<string>;

export function createReads({ apiUrl, safeFetch, clock }: XOptions): (token: string) => XRead {
  return (token) =>
    async ({ path, query, answerBytesMax }) => {
      const parameters = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
      const answer = await safeFetch(`${apiUrl}${path}?${new URLSearchParams(parameters).toString()}`, {
        method: "GET",
        headers: { authorization: `Bearer ${token}` },
        timeoutMs: (answerBytesMax ?? 0) > LARGE_BYTES ? LARGE_READ_TIMEOUT_MS : READ_TIMEOUT_MS,
        answerBytesMax,
      }).catch((fault: unknown) => {
        throw fault instanceof NetworkFault ? new SocialError("unavailable", fault.message) : fault;
      });
      if (answer.status !== 200) throw readFailure(answer, clock());
      return answer.text;
    };
}

/** Minimum and maximum `max_results` that an endpoint of X accepts. */
export interface PageSize {
  readonly least: number;
  readonly most: number;
}

export function clampPageSize({ limit }: PageRequest, { least, most }: PageSize): number {
  return Math.min(most, Math.max(least, Math.trunc(limit)));
}
