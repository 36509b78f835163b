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

const ACCEPTED = Type.Object({ messages: Type.Array(Type.Object({ id: Type.String() }), { minItems: 1 }) });

/**
 * Limits of the number (80 messages a second) and of number and recipient (one in 6 seconds), with the pause after which
 * there is room again; https://developers.facebook.com/documentation/business-messaging/whatsapp/throughput
 */
const PAUSES_MS: ReadonlyMap<number, number> = new Map([
  [130_429, 1_000],
  [131_056, 6_000],
]);

/**
 * What is wrong with the account, the number or the recipient, who is the same for each message of the channel: other
 * texts would fare no better. https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes
 */
const CHANNEL_FAULTS: ReadonlyMap<number, string> = new Map([
  [0, "the access token is refused"],
  [33, "the phone number is gone"],
  [130_497, "the account may not write to the recipient's country"],
  [131_005, "the access token lacks a permission"],
  [131_021, "the recipient is the sender"],
  [131_026, "the recipient cannot be reached on WhatsApp"],
  [131_030, "the recipient is not on the test number's list"],
  [131_031, "the account is locked"],
  [131_042, "the account's payment is not in order"],
  [131_045, "the phone number is not registered"],
  [131_047, "more than 24 hours since the recipient last wrote: it takes a message from them first"],
  [131_048, "the number is restricted, because too many messages were reported as spam"],
  [133_010, "the phone number is not registered"],
]);

/** Code 100 with this subcode: the phone number's id does not exist, or not for this token. */
const UNKNOWN_OBJECT_SUBCODE = 33;

/**
 * What an answer to a message means. Meta does not de-duplicate messages: only a throttle and a refusal with a code
 * prove that nothing was sent. `delivered` means taken: what becomes of it later only a webhook would tell. The message's
 * id is not kept, as it holds the recipient's telephone number.
 */
export function classifyWhatsappAnswer(answer: NetworkAnswer): DispatchResult {
  const { status, headers } = answer;
  if (status === 200 && readJson(ACCEPTED, answer.text) !== undefined) {
    const pauseMs = usagePauseMs(headers);
    return { outcome: "delivered", status, ...(pauseMs === undefined ? {} : { pauseMs }) };
  }
  const error = graphErrorOf(answer);
  const detail = describeWhatsapp(status, error);
  const pause = pauseOf(answer, error);
  if (pause !== undefined) return { outcome: "retryable", status, detail, retryAfterMs: pause };
  if (isChannelFault(status, error)) return { outcome: "refused", status, detail, channel: true };
  if (status < 400 || isPassing(status, error)) return { outcome: "in_doubt", status, detail };
  return { outcome: "refused", status, detail, channel: false };
}

/** Of a throttle. */
function pauseOf({ status, headers }: NetworkAnswer, error: GraphError | undefined): number | undefined {
  const documented = PAUSES_MS.get(error?.code ?? -1);
  if (documented !== undefined) return retryAfterOf(headers) ?? documented;
  return isRateLimit(status, error) ? rateLimitPauseMs(headers) : undefined;
}

function isChannelFault(status: number, error: GraphError | undefined): boolean {
  if (error !== undefined && CHANNEL_FAULTS.has(error.code)) return true;
  return isCredentialFault(status, error) || (error?.code === 100 && error.error_subcode === UNKNOWN_OBJECT_SUBCODE);
}

/** Status and codes, with words of ours where they help. */
export function describeWhatsapp(status: number, error: GraphError | undefined): string {
  const words = CHANNEL_FAULTS.get(error?.code ?? -1);
  return describeGraph("WhatsApp", status, error) + (words === undefined ? "" : `: ${words}`);
}
