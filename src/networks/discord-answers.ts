import { Type } from "@sinclair/typebox";
import { excerpt } from "./excerpt.ts";
import { readJson } from "./json-answer.ts";
import type { DispatchResult } from "./network.ts";
import { retryAfterMs, retryAfterOf } from "./retry-after.ts";
import type { NetworkAnswer } from "./safe-fetch.ts";

/** A message's id is a number of 64 bits, written as text. */
const SENT = Type.Object({ id: Type.String({ pattern: "^[0-9]{1,20}$" }) });

const REFUSED = Type.Object({ code: Type.Integer(), message: Type.String() });

/** Seconds, with fractions. */
const LIMITED = Type.Object({ retry_after: Type.Number() });

const CHANNEL_STATUSES: ReadonlySet<number> = new Set([401, 403, 404]);

/**
 * 400s that each message would meet: thread locked or archived, a forum that wants a thread. The texts of a webhook
 * do not change that; https://docs.discord.com/developers/topics/opcodes-and-status-codes#json
 */
const CHANNEL_CODES: ReadonlySet<number> = new Set([10_003, 10_015, 50_027, 50_083, 160_005, 220_001]);

/**
 * What an answer to a message means. Discord does not de-duplicate: only a 429 and a plain refusal prove that nothing
 * was posted, and only the message itself (`wait=true`) that it was saved.
 * https://docs.discord.com/developers/topics/rate-limits
 */
export function classifyDiscordAnswer(answer: NetworkAnswer): DispatchResult {
  const { status, text } = answer;
  const sent = status === 200 ? readJson(SENT, text) : undefined;
  if (sent !== undefined) return { outcome: "delivered", status, networkId: sent.id, ...pauseAfter(answer) };
  const detail = describeDiscord(answer);
  if (status === 429) {
    // The body has fractions of a second; without it a proxy in front of Discord answered.
    const pause = retryAfterMs(readJson(LIMITED, text)?.retry_after) ?? retryAfterOf(answer.headers);
    return { outcome: "retryable", status, detail, ...(pause === undefined ? {} : { retryAfterMs: pause }) };
  }
  // 408 leaves open how much the server had understood.
  if (status < 400 || status === 408 || status >= 500) return { outcome: "in_doubt", status, detail };
  const code = readJson(REFUSED, text)?.code;
  const channel = CHANNEL_STATUSES.has(status) || (code !== undefined && CHANNEL_CODES.has(code));
  return { outcome: "refused", status, detail, channel };
}

/** The last message that the window has room for tells when the next one opens. */
function pauseAfter({ headers }: NetworkAnswer): { readonly pauseMs?: number } {
  if (headers.get("x-ratelimit-remaining") !== "0") return {};
  const pauseMs = retryAfterMs(headers.get("x-ratelimit-reset-after"));
  return pauseMs === undefined ? {} : { pauseMs };
}

/** The status with Discord's code and words, where there are any. */
export function describeDiscord({ status, text }: NetworkAnswer): string {
  const refused = readJson(REFUSED, text);
  return `Discord answered ${status}${refused === undefined ? "" : `, error ${refused.code} ${excerpt(refused.message)}`}`;
}
