import type { FailureReason, KnownRecipient, RunEnd } from "../../events/outreach.ts";
import type { RateWindow, SendDmResult } from "../networks/network.ts";
import type { OutcomeFact } from "./outcome.ts";

/** Why a message whose intent was recorded is not sent after all. */
export type GiveUp = "stopped" | "day_over" | "lease_lost" | "suppressed" | "other_account";

/** A send that came to an end; `gave_up`: before anything was asked of the network, or after a 429. */
export type SendDecided =
  | Exclude<SendDmResult, { outcome: "rate_limited" }>
  | { readonly outcome: "gave_up"; readonly why: GiveUp; readonly rate: RateWindow | undefined };

const GIVEN_UP: Readonly<Record<GiveUp, string>> = {
  stopped: "the run ended before the message went out",
  day_over: "the day ended before the message went out",
  lease_lost: "the right to make runs could not be confirmed in time",
  other_account: "another account was linked before the message went out",
  suppressed: "the person was suppressed before the message went out",
};

/** What a send means: the outcome to record, and whether the run ends with it. */
export function decideOutcome(
  attempt: { attempt_id: string; run_id: string; recipient: KnownRecipient },
  result: SendDecided,
): { readonly fact: OutcomeFact; readonly end?: RunEnd } {
  const failed = (reason: FailureReason, detail: string, retry: boolean): OutcomeFact => ({
    type: "DirectMessageFailed",
    data: { ...attempt, reason, detail, frees_quota: true, retry },
  });
  switch (result.outcome) {
    case "sent": {
      const data = { ...attempt, message_id: result.messageId, settled_by: "answer" } as const;
      return { fact: { type: "DirectMessageSent", data } };
    }
    case "in_doubt":
      return { fact: { type: "DirectMessageInDoubt", data: { ...attempt, detail: result.detail } } };
    case "recipient_closed":
      return { fact: failed("recipient_closed", result.detail, false) };
    case "rejected":
      return { fact: failed("rejected", result.detail, false) };
    case "unreachable":
      return { fact: failed("unreachable", result.detail, true), end: "network_unavailable" };
    case "unauthorized":
      return {
        fact: failed("unauthorized", "the network no longer accepts the grant", true),
        end: "not_authorized",
      };
    case "gave_up": {
      const isUnwanted = result.why === "suppressed";
      return { fact: failed(isUnwanted ? "suppressed" : "withdrawn", GIVEN_UP[result.why], !isUnwanted) };
    }
    case "stopped":
      return { fact: failed(result.reason, result.detail, true), end: result.reason };
  }
}
