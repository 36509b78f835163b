import type { RecipientSource } from "../../events/outreach.ts";
import { findPerson } from "../../projections/contact-identity.ts";
import type { Run } from "../../projections/run.ts";
import { type EventMetadata, type NewEvent, STREAMS } from "../log/event-log.ts";
import { type AppendDecision, handle } from "../log/decide-and-append.ts";
import { isSkewed } from "../log/log-clock.ts";
import { isoTime } from "../platform/clock.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import type { RateWindow, SendDmResult, SocialUser } from "../networks/network.ts";
import {
  waitForProjections,
  type OutreachContext,
  outreachState,
  RUN_ATTEMPTS_MAX,
  quotaNow,
  type RunContext,
} from "./context.ts";
import { decideTurn, isSuppressed, type TurnRefused } from "./decide.ts";
import { decideSendOutcome, type GiveUp, type OutcomeEvent, type SendDecided } from "./outcomes/send-outcome.ts";
import { refuseFollowUp } from "./campaigns/rules.ts";
import { isRecordedPause, RETRY_WAIT_MS_MIN, spacingMs } from "./pacing-and-retries.ts";
import { refusedForAccount } from "./run-limits.ts";
import { isClosedFor } from "./send-window.ts";

/**
 * Sends one message to one recipient and records the outcome, or records why not. Returns `rejected` if the network
 * refused the message itself, and `end` with the reason if the run ends.
 */
export async function takeTurn(context: RunContext, user: SocialUser, source: RecipientSource | undefined) {
  for (;;) {
    const intended = await intend(context, user, source);
    if (intended.attempt === undefined) {
      const { end, isClosed = false } = intended;
      return { nextSendAt: undefined, isSaid: false, rejected: false, isClosed, end };
    }
    const result = await sendUntilDecided(context, intended);
    const called = result.outcome !== "gave_up" || result.rate !== undefined;
    const now = context.clock();
    /** Time at which the run may send its next message, ms since the epoch; undefined if no send was requested. */
    const nextSendAt = called ? now + spacingMs(result.rate, now, context.spacingMs, context.random()) : undefined;
    /** True if the outcome event states when the next message goes out. */
    const isSaid = result.outcome === "sent" && isRecordedPause((nextSendAt ?? now) - now);
    const { newEvent, more, end } = decideSendOutcome(
      intended.attempt,
      result,
      () => refusedForAccount(outreachState(context), intended.attempt.recipient),
      isSaid ? isoTime(nextSendAt!) : undefined,
    );
    await recordOutcome(context, newEvent, context.metadata, more);
    // The new day has its own quota.
    if (result.outcome === "gave_up" && result.why === "day_over") continue;
    /** True if the recipient's sending window is closed, so that their turn comes later. */
    const isClosed = result.outcome === "gave_up" && result.why === "window_closed";
    return { nextSendAt, isSaid, rejected: result.outcome === "rejected", isClosed, end };
  }
}

type Intent = Extract<Awaited<ReturnType<typeof intend>>, { readonly text: string }>;

/** Decides on the newest state whether the recipient gets a message. Appends the intent to write, or the skip. */
async function intend(context: RunContext, user: SocialUser, source: RecipientSource | undefined) {
  const { runId: run_id, accountId, metadata, lease, rules } = context;
  const recipient = { id: user.id, username: user.username };
  const { campaign } = rules;
  const attempt = { attempt_id: context.makeId(), run_id, recipient, ...omitUndefined({ campaign }) };
  const linkSecret = context.newLinkSecret?.();
  const optOutCode = context.newOptOutCode();
  const decide = (): AppendDecision<TurnRefused> => {
    if (context.signal.aborted) return { refusal: { end: undefined } };
    if (isSkewed(context.skewMs())) return { refusal: { end: "clock_skewed" } };
    const command = { ...attempt, user, accountId, now: quotaNow(context), source, linkSecret, optOutCode };
    return decideTurn(outreachState(context), rules, command);
  };
  const handled = await handle(context, STREAMS.outreach, decide, { metadata, lease, attempts: RUN_ATTEMPTS_MAX });
  if ("refusal" in handled) return { ...handled.refusal, attempt: undefined };
  const intent = handled.events.at(-1);
  if (intent?.type !== "DirectMessageAttempted") return { attempt: undefined, end: undefined };
  return { attempt, text: intent.data.text, day: intent.data.day };
}

/**
 * Requests a send until its outcome is known. A 429 is certain non-delivery, so the same intent waits for the
 * rate-limit window; a 401 is tried once more with a fresh token. Changes of the state are checked before each request.
 */
async function sendUntilDecided(context: RunContext, intent: Intent): Promise<SendDecided> {
  const { attempt, text } = intent;
  let rate: RateWindow | undefined;
  for (;;) {
    let why: GiveUp | undefined;
    // Checked inside the call, because refreshing the token may have taken a minute.
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

/** Placeholder for the network's answer if the send was given up before any request. */
const NOT_ASKED: SendDmResult = { outcome: "unreachable", detail: "given up before", rate: undefined };

/**
 * Returns why a message must not be sent after all. Checks run, lease and recipient right before the send, as the
 * network knows no fences, and reads the log after the lease renewal, to see what was appended meanwhile.
 */
async function reasonToGiveUp(context: RunContext, { attempt, day }: Intent): Promise<GiveUp | undefined> {
  const isOurs = await context.lease.keep(SEND_MS_MAX);
  await waitForProjections(context);
  const state = outreachState(context);
  const contact = findPerson(state.contacts, attempt.recipient);
  if (isSuppressed(state, context.rules, attempt.recipient)) return "suppressed";
  if (contact?.held === true) return "held";
  if (refuseFollowUp(state, contact, context.rules) !== undefined) return "answered";
  if (state.account.user?.id !== context.accountId) return "other_account";
  // Checked again, because the read may have outlasted the lease.
  if (!isOurs()) return "lease_lost";
  if (context.signal.aborted) return "stopped";
  // The lease was just renewed, which showed the log's time.
  if (isSkewed(context.skewMs())) return "clock_skewed";
  const now = quotaNow(context);
  // On the next day the message would exceed that day's limit.
  if (now.day !== day) return "day_over";
  const isClosed = isClosedFor(context.rules.window, contact, now);
  return isClosed ? "window_closed" : undefined;
}

/**
 * Appends the outcome of an attempt to send and what follows from it, unless the attempt is settled. Each attempt gets
 * at most one final outcome, even if the run, the next start and other instances all look at it.
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
 * Decides which events record an attempt's outcome. No events if the attempt is settled, or is in doubt and was so
 * before.
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
