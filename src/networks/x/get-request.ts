import type { Clock } from "../../platform/clock.ts";
import { SocialError, type PageRequest } from "../network.ts";
import { type SafeFetch, NetworkFault } from "../safe-fetch.ts";
import { readFailure } from "./interpret-answer.ts";

/** Most answers of X come in a second. */
const READ_TIMEOUT_MS = 10_000;

/** A page of the longest messages is 12 MB, which a slow line has to carry as well. */
const LARGE_READ_TIMEOUT_MS = 30_000;

/** What is read with the longer deadline. */
const LARGE_BYTES = 1024 * 1024;

/** What an answer has around its entries, with those of X's errors that stand beside them. */
export const FRAME_BYTES = 64 * 1024;

export interface XOptions {
  readonly apiUrl: string;
  readonly safeFetch: SafeFetch;
  readonly clock: Clock;
}

/** A GET: answers the body of a 200 and throws a {@link SocialError} for everything else. */
export type XRead = (question: {
  readonly path: string;
  /** What is undefined is left out. */
  readonly query: Readonly<Record<string, string | undefined>>;
  /** Where the greatest good answer is larger than usual. */
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

/** What `max_results` may be. */
export interface PageSize {
  readonly least: number;
  readonly most: number;
}

export function clampPageSize({ limit }: PageRequest, { least, most }: PageSize): number {
  return Math.min(most, Math.max(least, Math.trunc(limit)));
}
