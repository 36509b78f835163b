import type { RecipientSource } from "../../events/outreach.ts";
import { findPerson } from "../../projections/contact-identity.ts";
import type { Run } from "../../projections/current-run.ts";
import { type EventMetadata, type NewEvent, STREAMS } from "../log/event-log.ts";
import { type AppendDecision, handle } from "../log/decide-and-append.ts";
import { isSkewed } from "../log/log-time-and-clock-skew.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import type { RateWindow, SendDmResult, SocialUser } from "../networks/network.ts";
import {
  waitForProjections,
  type OutreachContext,
  outreachState,
  RUN_ATTEMPTS_MAX,
  rulesNow,
  quotaNow,
  type RunContext,
} from "./run-context.ts";
import { decideTurn, isSuppressed, type TurnRefused } from "./decide.ts";
import { decideSendOutcome, type GiveUp, type OutcomeEvent, type SendDecided } from "./outcomes/decide-send-outcome.ts";
import { isEnded, refuseFollowUp, refuseWithoutConsent } from "./campaigns/recipient-refusal-rules.ts";
import { isRecordedPause, RETRY_WAIT_MS_MIN, spacingMs } from "./pacing-and-retries.ts";
import { refusedForAccount } from "./quota-and-reasons-to-end-run.ts";
import { isClosedFor } from "./send-window.ts";

/**
 * Sends one message to one recipient and records the outcome, or the reason why not. Returns `rejected` if the network
 * refused this very message, and `end` if the run must end.
 */
export async function takeTurn(context: RunContext, user: SocialUser, source: RecipientSource | undefined) {
  for (;;) {
    const intended = await intend(context, user, source);
    if (intended.attempt === undefined) {
      const { end, isWindowClosed = false } = intended;
      return { nextSendAt: undefined, isSaid: false, rejected: false, isWindowClosed, end };
    }
    const result = await sendUntilDecided(context, intended);
    const called = result.outcome !== "gave_up" || result.rate !== undefined;
    const now = context.clock();
    /** Time at which the run may send its next message, ms since the epoch; undefined if no send was requested. */
    const nextSendAt = called ? now + spacingMs(result.rate, now, context.spacingMs, context.random()) : undefined;
    /** True if the recorded outcome states when the next message goes out. */
    const isSaid = result.outcome === "sent" && isRecordedPause((nextSendAt ?? now) - now);
    const { newEvent, more, end } = decideSendOutcome(
      intended.attempt,
      result,
      () => refusedForAccount(outreachState(context), intended.attempt.recipient),
      isSaid ? isoTime(nextSendAt!) : undefined,
    );
    await recordOutcome(context, newEvent, context.metadata, more);
    // The day ended before the message was requested. The new day has its own quota, so the run decides about the
    // recipient once more.
    if (result.outcome === "gave_up" && result.why === "day_over") continue;
    /**
     * True if the recipient's sending window closed before the message was requested: the run gave the attempt up, and
     * the recipient gets another turn later.
     */
    const isWindowClosed = result.outcome === "gave_up" && result.why === "window_closed";
    return { nextSendAt, isSaid, rejected: result.outcome === "rejected", isWindowClosed, end };
  }
}

type Intent = Extract<Awaited<ReturnType<typeof intend>>, { readonly text: string }>;

/** Decides by the newest state whether the recipient gets a message. Appends the intent to write, or the skip. */
async function intend(context: RunContext, user: SocialUser, source: RecipientSource | undefined) {
  const { runId: run_id, accountId, metadata, lease } = context;
  const recipient = { id: user.id, username: user.username };
  const { campaign } = context.rules;
  const attempt = { attempt_id: context.makeId(), run_id, recipient, ...omitUndefined({ campaign }) };
  const linkSecret = context.newLinkSecret?.();
  const optOutCode = context.newOptOutCode();
  const decide = (): AppendDecision<TurnRefused> => {
    if (context.signal.aborted) return { refusal: { end: undefined } };
    if (isSkewed(context.skewMs())) return { refusal: { end: "clock_skewed" } };
    const command = { ...attempt, user, accountId, now: quotaNow(context), source, linkSecret, optOutCode };
    return decideTurn(outreachState(context), rulesNow(context), command);
  };
  const handled = await handle(context, STREAMS.outreach, decide, { metadata, lease, attempts: RUN_ATTEMPTS_MAX });
  if ("refusal" in handled) return { ...handled.refusal, attempt: undefined };
  const intent = handled.events.at(-1);
  if (intent?.type !== "DirectMessageAttempted") return { attempt: undefined, end: undefined };
  return { attempt, text: intent.data.text, day: intent.data.day };
}

/**
 * Sends the message until its outcome is known, checking before each request that it may still be sent. A 429 proves
 * that it was not delivered, so it is sent again once the rate limit resets; after a 401, once with a fresh token.
 */
async function sendUntilDecided(context: RunContext, intent: Intent): Promise<SendDecided> {
  const { attempt, text } = intent;
  let rate: RateWindow | undefined;
  for (;;) {
    let why: GiveUp | undefined;
    // `reasonToGiveUp` is called inside `send`, right before the request. Before that, `send` may have taken a minute
    // to refresh the token, in which the recipient may have opted out.
    const result = await context.credentials.send(async (token) => {
      why = await reasonToGiveUp(context, intent);
      return why === undefined ? context.network.sendDm(token, attempt.recipient.id, text) : NOT_ASKED;
    });
    if (why !== undefined) return { outcome: "gave_up", why, rate };
    if (result.outcome !== "rate_limited") return result;
    rate = result.rate;
    await context.pause("rate_limited", Math.max(result.retryAt, context.clock() + RETRY_WAIT_MS_MIN));
  }
}

/** Upper bound of the time that one request to send takes, in ms. The lease must last at least this long. */
const SEND_MS_MAX = 20_000;

/**
 * Placeholder for the network's answer if the run gave the message up before the request, so that there is no answer.
 */
const NOT_ASKED: SendDmResult = { outcome: "unreachable", detail: "given up before", rate: undefined };

/**
 * Returns why a message must not be sent after all. The network checks no fencing token, so the lease, the run and the
 * recipient are checked right before the request, with the events appended until now.
 */
async function reasonToGiveUp(context: RunContext, { attempt, day }: Intent): Promise<GiveUp | undefined> {
  const isOurs = await context.lease.keep(SEND_MS_MAX);
  await waitForProjections(context);
  const state = outreachState(context);
  const contact = findPerson(state.contacts, attempt.recipient);
  if (isSuppressed(state, context.rules, attempt.recipient)) return "suppressed";
  if (contact?.held === true) return "held";
  if (refuseFollowUp(state, contact, context.rules) !== undefined) return "answered";
  if (isEnded(state, context.rules.campaign)) return "campaign_ended";
  const isCampaign = context.rules.campaign !== undefined;
  if (isCampaign && refuseWithoutConsent(contact, rulesNow(context)) !== undefined) return "no_consent";
  if (state.account.user?.id !== context.accountId) return "other_account";
  // The lease may have expired while the log was read.
  if (!isOurs()) return "lease_lost";
  if (context.signal.aborted) return "stopped";
  // The difference of the clocks is up to date: renewing the lease above has just measured it.
  if (isSkewed(context.skewMs())) return "clock_skewed";
  const now = quotaNow(context);
  // The message counts for the day of its intent, which is over. Sent now, it could exceed the limit of the new day.
  if (now.day !== day) return "day_over";
  const isClosed = isClosedFor(context.rules.window, contact, now);
  return isClosed ? "window_closed" : undefined;
}

/**
 * Appends the outcome of an attempt and the events that follow from it, unless the attempt is settled. So each attempt
 * gets one final outcome, even if several instances look it up.
 */
export async function recordOutcome(
  context: OutreachContext,
  newEvent: OutcomeEvent,
  metadata: EventMetadata,
  more: readonly NewEvent[] = [],
): Promise<void> {
  const decide = () => decideRecorded(context.projector.state("run"), newEvent, more);
  await handle(context, STREAMS.outreach, decide, { metadata, attempts: RUN_ATTEMPTS_MAX });
}

/**
 * Decides which events record an attempt's outcome. Returns no event if the attempt is settled, or if it is in doubt
 * and the new outcome is a doubt too.
 */
export function decideRecorded(
  { open }: Run,
  newEvent: OutcomeEvent,
  more: readonly NewEvent[],
): AppendDecision<never> {
  const attempt = open.get(newEvent.data.attempt_id);
  if (attempt === undefined || (newEvent.type === "DirectMessageInDoubt" && attempt.in_doubt)) return { events: [] };
  return { events: [newEvent, ...more] };
}
