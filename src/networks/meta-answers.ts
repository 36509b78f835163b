import { Type } from "@sinclair/typebox";
import {
  describeGraph,
  graphErrorOf,
  isCredentialFault,
  isPassing,
  isRateLimit,
  rateLimitPauseMs,
  usagePauseMs,
  type GraphError,
} from "./graph.ts";
import { readJson } from "./json-answer.ts";
import type { DispatchResult } from "./network.ts";
import { retryAfterOf } from "./retry-after.ts";
import type { NetworkAnswer } from "./safe-fetch.ts";

const RECEIVED = Type.Object({
  events_received: Type.Integer(),
  fbtrace_id: Type.Optional(Type.String({ maxLength: 100 })),
});

/** Code 100 with this subcode: the pixel does not exist, or not for this token. */
const UNKNOWN_OBJECT_SUBCODE = 33;

/**
 * What an answer of the Conversions API means for all `events` of its request: Meta takes all of them or none. It
 * de-duplicates by `event_id`, so all that may pass is sent again.
 * https://developers.facebook.com/docs/graph-api/guides/error-handling
 */
export function classifyMetaAnswer(answer: NetworkAnswer, events = 1): DispatchResult {
  const { status, headers } = answer;
  const received = status === 200 ? readJson(RECEIVED, answer.text) : undefined;
  if (received !== undefined && received.events_received >= events) {
    const { fbtrace_id } = received;
    const pauseMs = usagePauseMs(headers);
    return {
      outcome: "delivered",
      status,
      ...(fbtrace_id === undefined ? {} : { networkId: fbtrace_id }),
      ...(pauseMs === undefined ? {} : { pauseMs }),
    };
  }
  const error = graphErrorOf(answer);
  const detail = describeGraph("Meta", status, error);
  if (isRateLimit(status, error)) {
    return { outcome: "retryable", status, detail, retryAfterMs: rateLimitPauseMs(headers) };
  }
  if (isPassing(status, error) || (error === undefined && status < 400)) {
    const pause = retryAfterOf(headers) ?? usagePauseMs(headers);
    const wait = pause === undefined ? {} : { retryAfterMs: pause };
    return { outcome: "retryable", status, detail, mayHaveArrived: true, ...wait };
  }
  return { outcome: "refused", status, detail, channel: isChannelFault(status, error) };
}

function isChannelFault(status: number, error: GraphError | undefined): boolean {
  return isCredentialFault(status, error) || (error?.code === 100 && error.error_subcode === UNKNOWN_OBJECT_SUBCODE);
}
