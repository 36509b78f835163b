import { VersionConflict } from "eventstore-lite";
import type { KnownRecipient, RunEnd } from "../../events/outreach.ts";
import { linksIn } from "../../projections/sent-links.ts";
import { STREAMS, type NewEvent } from "../log/event-log.ts";
import type { RateWindow, SendDmResult, SocialUser } from "../networks/network.ts";
import { catchUp, outreachState, quotaNow, today, type RunContext } from "./context.ts";
import { decideOutcome, type GiveUp, type SendDecided } from "./decide-outcome.ts";
import { isSuppressed, isSkipRecorded, judgeUser, refusedForAccount, remaining, type Refusal } from "./decide.ts";
import { recordOutcome } from "./outcome.ts";
import { RETRY_WAIT_MS_MIN } from "./retry-after-rate-limit.ts";
import { pause } from "./pause.ts";

/** What one person's turn came to. `called`: the network was asked to send, so the pace applies. */
export interface Turn {
  readonly called: boolean;
  readonly rate: RateWindow | undefined;
  /** The network refused the message for what it is. */
  readonly rejected: boolean;
  /** Why the run ends here; undefined: it goes on. */
  readonly end: RunEnd | undefined;
}

interface Attempt {
  readonly attempt_id: string;
  readonly run_id: string;
  readonly recipient: KnownRecipient;
}

/** Intent, send, outcome: one message to one person, or the recorded reason why not. */
export async function takeTurn(context: RunContext, user: SocialUser): Promise<Turn> {
  for (;;) {
    const intended = await intend(context, user);
    if (intended.attempt === undefined) return { called: false, rate: undefined, rejected: false, end: intended.end };
    const result = await sendUntilDecided(context, intended);
    const refusedBefore = refusedForAccount(outreachState(context), intended.attempt.recipient);
    const { newEvent, more, end } = decideOutcome(intended.attempt, result, refusedBefore);
    await recordOutcome(context, newEvent, context.metadata, more);
    // A new day has places of its own.
    if (result.outcome === "gave_up" && result.why === "day_over") continue;
    const called = result.outcome !== "gave_up" || result.rate !== undefined;
    return { called, rate: result.rate, rejected: result.outcome === "rejected", end };
  }
}

interface Intent {
  readonly attempt: Attempt;
  readonly text: string;
  readonly day: string;
}

type Intention = Intent | { readonly attempt: undefined; readonly end: RunEnd | undefined };

/**
 * Judges the person on the newest state and appends the intent, fenced by the stream's version: whatever was
 * appended meanwhile (a suppression, another intent) makes it judge anew.
 */
async function intend(context: RunContext, user: SocialUser): Promise<Intention> {
  for (;;) {
    if (context.signal.aborted) return { attempt: undefined, end: undefined };
    const state = outreachState(context);
    if (state.account.user?.id !== context.accountId) return { attempt: undefined, end: "not_authorized" };
    const verdict = judgeUser(state, context.rules, user);
    const now = quotaNow(context);
    const { day, timezone } = now;
    if (verdict.verdict === "pass") return { attempt: undefined, end: undefined };
    if (verdict.verdict === "write" && remaining(state, context.rules, now) === 0) {
      return { attempt: undefined, end: "daily_limit_reached" };
    }
    const attempt = {
      attempt_id: context.makeId(),
      run_id: context.runId,
      recipient: { id: user.id, username: user.username },
    };
    const newEvent: NewEvent =
      verdict.verdict === "write"
        ? {
            type: "DirectMessageAttempted",
            data: {
              ...attempt,
              text: verdict.text,
              links: [...linksIn(verdict.text)],
              variant: verdict.variant,
              template: context.rules.template.id,
              ...(context.accountId === undefined ? {} : { account_id: context.accountId }),
              day,
              timezone,
            },
          }
        : {
            type: "DirectMessageSkipped",
            data: {
              run_id: context.runId,
              recipient: attempt.recipient,
              ...reasonOf(verdict),
            },
          };
    if (verdict.verdict === "skip" && isSkipRecorded(state, attempt.recipient, verdict.reason)) {
      return { attempt: undefined, end: undefined };
    }
    if (!(await appendFenced(context, [newEvent], state.run.version))) continue;
    return verdict.verdict === "write" ? { attempt, text: verdict.text, day } : { attempt: undefined, end: undefined };
  }
}

/** False when the stream moved on meanwhile; the projections have caught up with it then. */
export async function appendFenced(
  context: RunContext,
  newEvents: readonly NewEvent[],
  expected: number,
): Promise<boolean> {
  try {
    const appended = await context.eventLog.append(STREAMS.outreach, newEvents, context.metadata, {
      expected,
      fence: context.fence,
    });
    await context.projector.until(appended.last);
    return true;
  } catch (fault) {
    if (!(fault instanceof VersionConflict)) throw fault;
    await catchUp(context);
    return false;
  }
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
    await pause(context, "rate_limited", Math.max(result.retryAt, context.clock() + RETRY_WAIT_MS_MIN));
  }
}

/** Stands for the answer of a network that was not called. */
const NOT_ASKED: SendDmResult = { outcome: "unreachable", detail: "given up before", rate: undefined };

/**
 * The network cannot be fenced, so this is asked at the last moment before it: whether the run and the day go on (sent
 * on the next day, the message would be one more than that day's limit), whether nobody else makes the runs by now, and
 * whether the person still may be written to. The log is looked at last: what became durable while the lease was renewed
 * is seen, and the lease is asked again for the time that the look took.
 */
async function reasonToGiveUp(context: RunContext, { attempt, day }: Intent): Promise<GiveUp | undefined> {
  const isOurs = await context.keepLease();
  await catchUp(context);
  const state = outreachState(context);
  if (isSuppressed(state, context.rules, attempt.recipient)) return "suppressed";
  if (state.account.user?.id !== context.accountId) return "other_account";
  if (!isOurs()) return "lease_lost";
  if (context.signal.aborted) return "stopped";
  return today(context) === day ? undefined : "day_over";
}

/** A skip as the event tells it. */
export function reasonOf({ reason, detail, found }: Extract<Refusal, { verdict: "skip" }>) {
  return {
    reason,
    ...(detail === undefined ? {} : { detail }),
    ...(found === undefined ? {} : { found }),
  };
}
