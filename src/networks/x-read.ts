import type { Clock } from "../platform/clock.ts";
import { NetworkFault } from "./network-fault.ts";
import { SocialError } from "./network.ts";
import type { SafeFetch } from "./safe-fetch.ts";
import { readFailure } from "./x-outcome.ts";

/** Most answers of X come in a second. */
const READ_TIMEOUT_MS = 10_000;

/** A page of the longest messages is 12 MB, which a slow line has to carry as well. */
const LARGE_READ_TIMEOUT_MS = 30_000;

/** What is read with the longer deadline. */
const LARGE_BYTES = 1024 * 1024;

export interface XOptions {
  readonly apiUrl: string;
  readonly safeFetch: SafeFetch;
  readonly clock: Clock;
}

export interface XQuestion {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Where the greatest good answer is larger than usual. */
  readonly answerBytesMax?: number;
}

/** A GET: answers the body of a 200 and throws a {@link SocialError} for everything else. */
export type XRead = (token: string, question: XQuestion) => Promise<string>;

export function createRead({ apiUrl, safeFetch, clock }: XOptions): XRead {
  return async (token, { path, query, answerBytesMax }) => {
    const answer = await safeFetch(`${apiUrl}${path}?${new URLSearchParams(query).toString()}`, {
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
