import type { FailureReason, KnownRecipient, Recipient, RunEnd } from "../../events/outreach.ts";
import type { NewEvent } from "../log/event-log.ts";
import type { RateWindow, SendDmResult } from "../networks/network.ts";
import type { OutcomeEvent } from "./outcome.ts";

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

interface Decided {
  readonly newEvent: OutcomeEvent;
  /** What follows from it, to be recorded with it. */
  readonly more?: readonly NewEvent[];
  /** Why the run ends with it. */
  readonly end?: RunEnd;
}

/**
 * What a send means. `refusedBefore`: where the network's refusal of this person would be the account's, those who were
 * refused before for the same reason: they were not at fault, so a later run may try them again.
 */
export function decideOutcome(
  attempt: { attempt_id: string; run_id: string; recipient: KnownRecipient },
  result: SendDecided,
  refusedBefore: readonly Recipient[] | undefined,
): Decided {
  const failed = (reason: FailureReason, detail: string, retry: boolean): OutcomeEvent => ({
    type: "DirectMessageFailed",
    data: { ...attempt, reason, detail, frees_quota: true, retry },
  });
  switch (result.outcome) {
    case "sent": {
      const data = { ...attempt, message_id: result.messageId, settled_by: "answer" } as const;
      return { newEvent: { type: "DirectMessageSent", data } };
    }
    case "in_doubt":
      return { newEvent: { type: "DirectMessageInDoubt", data: { ...attempt, detail: result.detail } } };
    case "recipient_closed":
    case "not_permitted": {
      if (refusedBefore === undefined) return { newEvent: failed(result.outcome, result.detail, false) };
      const detail = `${result.detail}; ${refusedBefore.length} other people were refused before, one after the other`;
      const more = refusedBefore.map((recipient): NewEvent => {
        return { type: "RecipientRetryAllowed", data: { recipient, run_id: attempt.run_id } };
      });
      return { newEvent: failed("sender_restricted", detail, true), more, end: "sender_restricted" };
    }
    case "rejected":
      return { newEvent: failed("rejected", result.detail, false) };
    case "unreachable":
      return { newEvent: failed("unreachable", result.detail, true), end: "network_unavailable" };
    case "unauthorized":
      return {
        newEvent: failed("unauthorized", "the network no longer accepts the grant", true),
        end: "not_authorized",
      };
    case "gave_up": {
      const isUnwanted = result.why === "suppressed";
      return { newEvent: failed(isUnwanted ? "suppressed" : "withdrawn", GIVEN_UP[result.why], !isUnwanted) };
    }
    case "stopped":
      return { newEvent: failed(result.reason, result.detail, true), end: result.reason };
  }
}
