import { Type } from "@sinclair/typebox";
import { readJson } from "./json-answer.ts";
import type { DispatchResult } from "./network.ts";
import { retryAfterMs } from "./retry-after.ts";
import type { NetworkAnswer } from "./safe-fetch.ts";

const RECEIVED = Type.Object({
  events_received: Type.Integer({ minimum: 1 }),
  fbtrace_id: Type.Optional(Type.String({ maxLength: 100 })),
});

const REFUSED = Type.Object({
  error: Type.Object({
    code: Type.Integer(),
    error_subcode: Type.Optional(Type.Integer()),
    is_transient: Type.Optional(Type.Boolean()),
  }),
});

/** Unknown error, service down, and the throttles of app, user and page; those of business use cases are 80000 to 80014. */
const TRANSIENT_CODES: ReadonlySet<number> = new Set([1, 2, 4, 17, 32, 341, 613]);

/** Missing capability or permission, expired or revoked token, blocked for policy; 200 to 299 are permissions too. */
const CREDENTIAL_CODES: ReadonlySet<number> = new Set([3, 10, 102, 190, 368]);

/** Code 100 with this subcode: the pixel does not exist, or not for this token. */
const UNKNOWN_OBJECT_SUBCODE = 33;

/**
 * What an answer of the Conversions API means for the events of its request. Meta de-duplicates by `event_id`, so all
 * that may pass is sent again. Details hold Meta's codes, never its message, which can repeat the token.
 * https://developers.facebook.com/docs/graph-api/guides/error-handling
 */
export function classifyMetaAnswer(answer: NetworkAnswer): DispatchResult {
  const { status } = answer;
  const received = status === 200 ? readJson(RECEIVED, answer.text) : undefined;
  if (received !== undefined) {
    const networkId = received.fbtrace_id;
    return {
      outcome: "delivered",
      status,
      ...(networkId === undefined ? {} : { networkId }),
    };
  }
  const error = readJson(REFUSED, answer.text)?.error;
  const detail = describe(status, error);
  if (isTransient(status, error)) return retryable(answer, detail);
  return {
    outcome: "refused",
    status,
    detail,
    channel: isChannelFault(status, error),
  };
}

interface MetaError {
  readonly code: number;
  readonly error_subcode?: number;
  readonly is_transient?: boolean;
}

function isTransient(status: number, error: MetaError | undefined): boolean {
  if (status >= 500 || status === 429 || status === 408) return true;
  if (error === undefined) return status < 400;
  const { code, is_transient } = error;
  return is_transient === true || TRANSIENT_CODES.has(code) || (code >= 80_000 && code <= 80_014);
}

function isChannelFault(status: number, error: MetaError | undefined): boolean {
  if (error === undefined) return status === 401 || status === 403 || status === 404;
  const { code, error_subcode } = error;
  if (CREDENTIAL_CODES.has(code) || (code >= 200 && code <= 299)) return true;
  return code === 100 && error_subcode === UNKNOWN_OBJECT_SUBCODE;
}

function retryable({ status, headers }: NetworkAnswer, detail: string): DispatchResult {
  const pause = retryAfterMs(headers.get("retry-after"));
  return {
    outcome: "retryable",
    status,
    detail,
    ...(pause === undefined ? {} : { retryAfterMs: pause }),
  };
}

function describe(status: number, error: MetaError | undefined): string {
  if (error === undefined) return `Meta answered ${status} without a result`;
  const subcode = error.error_subcode === undefined ? "" : `/${error.error_subcode}`;
  return `Meta answered ${status}, error ${error.code}${subcode}`;
}
