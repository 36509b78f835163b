import type { RecipientSource } from "../../events/outreach.ts";
import { findPerson } from "../../projections/contacts.ts";
import type { Run } from "../../projections/run.ts";
import { type EventMetadata, type NewEvent, STREAMS } from "../log/event-log.ts";
import { type AppendDecision, handle } from "../log/decide-and-append.ts";
import { isSkewed } from "../log/log-clock.ts";
import { isoTime } from "../platform/clock.ts";
import type { RateWindow, SendDmResult, SocialUser } from "../networks/network.ts";
import {
  waitForProjections,
  type OutreachContext,
  outreachState,
  RUN_ATTEMPTS_MAX,
  quotaNow,
  type RunContext,
} from "./context.ts";
import {
  decideSendOutcome,
  decideTurn,
  type GiveUp,
  isSuppressed,
  type OutcomeEvent,
  type SendDecided,
  type TurnRefused,
} from "./decide.ts";
import { isRecordedPause, RETRY_WAIT_MS_MIN, spacingMs } from "./pacing-and-retries.ts";
import { refusedForAccount } from "./run-limits.ts";
import { isClosedFor } from "./send-window.ts";

/**
 * Sends one message to one recipient and records the outcome, or records why not. `rejected`: the network refused the
 * message itself. `end`: why the run ends; undefined if it continues.
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
    /** When the next message may be sent, ms since the epoch; undefined if the network was not asked to send. */
    const nextSendAt = called ? now + spacingMs(result.rate, now, context.spacingMs, context.random()) : undefined;
    /** True if the log states that time. */
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
    /** True if the recipient's window is closed, so that their turn comes later. */
    const isClosed = result.outcome === "gave_up" && result.why === "window_closed";
    return { nextSendAt, isSaid, rejected: result.outcome === "rejected", isClosed, end };
  }
}

type Intent = Extract<Awaited<ReturnType<typeof intend>>, { readonly text: string }>;

/** Decides on the newest state whether the recipient gets a message, and records the intent or the skip. */
async function intend(context: RunContext, user: SocialUser, source: RecipientSource | undefined) {
  const { runId: run_id, accountId, metadata, lease } = context;
  const attempt = { attempt_id: context.makeId(), run_id, recipient: { id: user.id, username: user.username } };
  const linkSecret = context.newLinkSecret?.();
  const decide = (): AppendDecision<TurnRefused> => {
    if (context.signal.aborted) return { refusal: { end: undefined } };
    if (isSkewed(context.skewMs())) return { refusal: { end: "clock_skewed" } };
    const command = { ...attempt, user, accountId, now: quotaNow(context), source, linkSecret };
    return decideTurn(outreachState(context), context.rules, command);
  };
  const handled = await handle(context, STREAMS.outreach, decide, { metadata, lease, attempts: RUN_ATTEMPTS_MAX });
  if ("refusal" in handled) return { ...handled.refusal, attempt: undefined };
  const intent = handled.events.at(-1);
  if (intent?.type !== "DirectMessageAttempted") return { attempt: undefined, end: undefined };
  return { attempt, text: intent.data.text, day: intent.data.day };
}

/**
 * Sends until the outcome is decided. A 429 is certain non-delivery, so the same intent waits for the network's window;
 * a 401 is tried once more with a fresh token. Changes to the state are checked before each request.
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

/** Longer than one request to send takes. */
const SEND_MS_MAX = 20_000;

/** Stands for the answer of a network that was not called. */
const NOT_ASKED: SendDmResult = { outcome: "unreachable", detail: "given up before", rate: undefined };

/**
 * Returns why a message must not be sent after all. The network cannot be fenced, so run, lease and recipient are
 * checked right before the send. The log is read after the lease was renewed, to see what was appended during the
 * renewal.
 */
async function reasonToGiveUp(context: RunContext, { attempt, day }: Intent): Promise<GiveUp | undefined> {
  const isOurs = await context.lease.keep(SEND_MS_MAX);
  await waitForProjections(context);
  const state = outreachState(context);
  const contact = findPerson(state.contacts, attempt.recipient);
  if (isSuppressed(state, context.rules, attempt.recipient)) return "suppressed";
  if (contact?.held === true) return "held";
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
 * Records the outcome of an attempt and what follows from it, unless the attempt is settled. An attempt gets at most
 * one final outcome and is in doubt once, even if the run, the next start and other instances look at it.
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
 * Decides on the outcome and what follows from it; on nothing if the attempt has its outcome, or was in doubt before.
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
