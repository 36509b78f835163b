import type { FailureReason, KnownRecipient, Recipient, RunEnd } from "../../../events/outreach.ts";
import type { NewEvent } from "../../log/event-log.ts";
import type { RateWindow, SendDmResult } from "../../networks/network.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";

/** Reason why a message is not sent although the log holds the intent to send it. */
export type GiveUp =
  | "stopped"
  | "day_over"
  | "window_closed"
  | "lease_lost"
  | "suppressed"
  | "held"
  | "answered"
  | "campaign_ended"
  | "no_consent"
  | "other_account"
  | "clock_skewed";

/**
 * Outcome of an attempt to send. `gave_up`: the run decided not to send after all, before its request or while it
 * waited after a 429.
 */
export type SendDecided =
  | Exclude<SendDmResult, { outcome: "rate_limited" }>
  | { readonly outcome: "gave_up"; readonly why: GiveUp; readonly rate: RateWindow | undefined };

const GIVEN_UP: Readonly<Record<GiveUp, string>> = {
  stopped: "the run ended before the message went out",
  day_over: "the day ended before the message went out",
  window_closed: "the sending window closed before the message went out",
  lease_lost: "the lease for runs could not be confirmed in time",
  other_account: "another account was linked before the message went out",
  clock_skewed: "the clocks of the machine and of the log were too far apart before the message went out",
  suppressed: "the recipient was suppressed before the message went out",
  held: "the recipient's reply waits for an operator's decision",
  answered: "the recipient answered before the follow-up went out",
  campaign_ended: "an operator ended the campaign before the message went out",
  no_consent: "the recipient's consent was withdrawn before the message went out",
};

export type OutcomeEvent = Extract<
  NewEvent,
  { type: "DirectMessageSent" | "DirectMessageFailed" | "DirectMessageInDoubt" }
>;

interface Decided {
  readonly newEvent: OutcomeEvent;
  /** Further events that follow from the outcome of a send and are appended with it, such as permissions to retry. */
  readonly more?: readonly NewEvent[];
  readonly end?: RunEnd;
}

/**
 * Turns the result of a send into events. `refusedBefore` returns the recipients refused just before, if this refusal
 * counts against our account: they were not at fault, so a later run may retry them.
 */
export function decideSendOutcome(
  attempt: { attempt_id: string; run_id: string; recipient: KnownRecipient; campaign?: string },
  result: SendDecided,
  refusedBefore: () => readonly Recipient[] | undefined,
  nextAt?: string,
): Decided {
  const failed = (reason: FailureReason, detail: string, retry: boolean): OutcomeEvent => ({
    type: "DirectMessageFailed",
    data: { ...attempt, reason, detail, frees_quota: true, retry },
  });
  switch (result.outcome) {
    case "sent": {
      const settled = { message_id: result.messageId, settled_by: "answer" } as const;
      const data = { ...attempt, ...settled, ...omitUndefined({ next_at: nextAt }) };
      return { newEvent: { type: "DirectMessageSent", data } };
    }
    case "in_doubt":
      return { newEvent: { type: "DirectMessageInDoubt", data: { ...attempt, detail: result.detail } } };
    case "recipient_closed":
    case "rejected":
      return { newEvent: failed(result.outcome, result.detail, false) };
    case "not_permitted": {
      const before = refusedBefore();
      if (before === undefined) return { newEvent: failed(result.outcome, result.detail, false) };
      const detail = `${result.detail}; ${before.length} other people were refused before, one after the other`;
      const more = before.map((recipient): NewEvent => {
        return { type: "RecipientRetryAllowed", data: { recipient, run_id: attempt.run_id } };
      });
      return { newEvent: failed("sender_restricted", detail, true), more, end: "sender_restricted" };
    }
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
