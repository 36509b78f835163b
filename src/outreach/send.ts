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
 * Intent, send, outcome: one message to one recipient, or the recorded reason why not. `nextSendAt`: when the next one may
 * go out, ms since the epoch; undefined: the network was not asked to send. `isSaid`: the log says so. `rejected`: the network refused the message for what it is. `isClosed`: their window is, so
 * they come later. `end`: why the run ends here; undefined: it goes on.
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
    const nextSendAt = called ? now + spacingMs(result.rate, now, context.spacingMs, context.random()) : undefined;
    const isSaid = result.outcome === "sent" && isRecordedPause((nextSendAt ?? now) - now);
    const { newEvent, more, end } = decideSendOutcome(
      intended.attempt,
      result,
      () => refusedForAccount(outreachState(context), intended.attempt.recipient),
      isSaid ? isoTime(nextSendAt!) : undefined,
    );
    await recordOutcome(context, newEvent, context.metadata, more);
    // A new day has places of its own.
    if (result.outcome === "gave_up" && result.why === "day_over") continue;
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
 * A 429 is certain non-delivery, so the same intent waits for the window and is sent then; a 401 is tried once more
 * with a fresh token. What changed meanwhile is looked at before each request.
 */
async function sendUntilDecided(context: RunContext, intent: Intent): Promise<SendDecided> {
  const { attempt, text } = intent;
  let rate: RateWindow | undefined;
  for (;;) {
    let why: GiveUp | undefined;
    // Inside of the call: a token that had to be refreshed before it may have taken a minute.
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
 * The network cannot be fenced, so this checks right before the send that the run and the day go on, that this instance
 * still has the lease, and that the recipient still may be written to, now. (On the next day the message would exceed
 * that day's limit.) The log is read last, so that what became durable during the renewal is seen; then the lease is checked
 * for the time that the read took.
 */
async function reasonToGiveUp(context: RunContext, { attempt, day }: Intent): Promise<GiveUp | undefined> {
  const isOurs = await context.lease.keep(SEND_MS_MAX);
  await waitForProjections(context);
  const state = outreachState(context);
  const contact = findPerson(state.contacts, attempt.recipient);
  if (isSuppressed(state, context.rules, attempt.recipient)) return "suppressed";
  if (contact?.held === true) return "held";
  if (state.account.user?.id !== context.accountId) return "other_account";
  if (!isOurs()) return "lease_lost";
  if (context.signal.aborted) return "stopped";
  // The lease was renewed just now, which showed the log's time.
  if (isSkewed(context.skewMs())) return "clock_skewed";
  const now = quotaNow(context);
  if (now.day !== day) return "day_over";
  const isClosed = isClosedFor(context.rules.window, contact, now);
  return isClosed ? "window_closed" : undefined;
}

/**
 * Records the outcome of an attempt and what follows from it, unless the attempt is settled already. It gets at most one
 * final outcome, and is in doubt once, whether the run, the next start or another instance looks at it.
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

/** The outcome and what follows from it; nothing of an attempt that has its outcome, or was doubted before. */
export function decideRecorded(
  { open }: Run,
  newEvent: OutcomeEvent,
  more: readonly NewEvent[],
): AppendDecision<never> {
  const attempt = open.get(newEvent.data.attempt_id);
  if (attempt === undefined || (newEvent.type === "DirectMessageInDoubt" && attempt.in_doubt)) return { events: [] };
  return { events: [newEvent, ...more] };
}
