import { SocialError, type SendDmResult } from "./network.ts";
import type { NetworkAnswer } from "./safe-fetch.ts";
import { classifyXRefusal } from "./x-answers.ts";
import { sentId } from "./x-bodies.ts";
import { rateOf, retryAtOf } from "./x-rate.ts";

/** What the answer to a send means. `now` in ms since the epoch, when the answer came. */
export function sendOutcome(answer: NetworkAnswer, now: number): SendDmResult {
  const rate = rateOf(answer.headers, now);
  if (answer.status >= 200 && answer.status < 300) {
    const messageId = sentId(answer.text);
    if (messageId !== undefined) return { outcome: "sent", messageId, rate };
    return {
      outcome: "in_doubt",
      detail: `X answered ${answer.status} without the message's id`,
      rate,
    };
  }
  const refusal = classifyXRefusal(answer);
  if (refusal.kind === "rate_limited")
    return { outcome: "rate_limited", retryAt: retryAtOf(answer.headers, now), rate };
  if (refusal.kind === "unauthorized") return { outcome: "unauthorized", rate };
  const { kind, detail } = refusal;
  if (kind === "stopped") return { outcome: kind, reason: refusal.reason, detail, rate };
  // A duplicate may be the very message whose first answer was lost: only the conversation tells.
  const outcome = kind === "duplicate" || kind === "unavailable" ? "in_doubt" : kind;
  return { outcome, detail, rate };
}

/** The error that stands for a read's answer other than 200. */
export function readFailure(answer: NetworkAnswer, now: number): SocialError {
  const refusal = classifyXRefusal(answer);
  if (refusal.kind === "rate_limited") {
    return new SocialError("rate_limited", "X asks to wait", { retryAt: retryAtOf(answer.headers, now) });
  }
  if (refusal.kind === "unauthorized") return new SocialError("unauthorized", "X no longer accepts the token");
  const { kind, detail } = refusal;
  if (kind === "stopped") return new SocialError(kind, detail, { stop: refusal.reason });
  return new SocialError(kind === "unavailable" ? kind : "rejected", detail);
}
