import type { DataOf, Folded } from "../events/event-types-and-codec.ts";
import type { FailureReason, KnownRecipient, PauseReason, Recipient } from "../events/outreach.ts";
import { isUnnamed } from "./contact-identity.ts";
import type { Projection } from "./projection.ts";

/** Message whose outcome is not final: just attempted, or in doubt. */
export interface OpenAttempt {
  run_id: string;
  recipient: KnownRecipient;
  text: string;
  /** Time at which the intent to send the message was recorded, ISO 8601. */
  attempted_at: string;
  in_doubt: boolean;
  /** Account that sent the message; absent in older events. */
  account_id?: string;
  /** Campaign of the message; absent if it is `default`. */
  campaign?: string;
  /**
   * Time at which the message was found to be in doubt, ISO 8601. Its request may have left shortly before that time,
   * long after the intent was recorded, because a run waits for minutes after a 429.
   */
  doubted_at?: string;
  /** True if a caller requested the message to this recipient (`RecipientRequested`). Absent otherwise. */
  requested?: true;
}

export interface RunState extends Omit<DataOf<"RunStarted">, "rules"> {
  started_at: string;
  sent: number;
  skipped: number;
  failed: number;
  in_doubt: number;
  /** Number of messages that count toward the run's limit: those that it sent, or may have sent. */
  places: number;
  /** Number of `failed` messages that the run never asked the network to send. */
  withdrawn: number;
  /** Reason why the run waits, and the end of the wait (ISO 8601); null while it works. */
  waiting: { reason: PauseReason; until: string } | null;
  /** Time at which a stop of the run was requested, ISO 8601; null if none was. */
  stop_requested_at: string | null;
  /**
   * Recipients whose message a caller requested and who have no outcome in this run yet, the earliest request first.
   */
  requested: Recipient[];
}

/** Run in progress, and every message that still waits for its outcome, including those of earlier runs. */
export interface Run {
  current: RunState | null;
  open: Map<string, OpenAttempt>;
}

export const run: Projection<Run> = {
  name: "run",
  version: 12,
  types: [
    "RunStarted",
    "RunPaused",
    "RunStopRequested",
    "RecipientRequested",
    "RecipientNotReached",
    "DryRunRecipientListed",
    "DirectMessageAttempted",
    "DirectMessageSent",
    "DirectMessageSkipped",
    "DirectMessageFailed",
    "DirectMessageInDoubt",
    "DirectMessageLeft",
    "RunFinished",
    "RunAbandoned",
    "DryRunFinished",
    "RecipientRetryAllowed",
    "InboxRead",
    "SourceRead",
  ],
  initial: () => ({ current: null, open: new Map() }),
  evolve(state, event) {
    if (!run.types.includes(event.type)) return state;
    evolveRun(state, event);
    return state;
  },
};

function evolveRun(state: Run, event: Folded): void {
  if (state.current !== null && isDoneBy(state.current, event)) state.current.waiting = null;
  switch (event.type) {
    case "RunStarted": {
      const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0, places: 0, withdrawn: 0 };
      const { rules: _rules, ...data } = event.data;
      const rest = { waiting: null, stop_requested_at: null, requested: [] };
      state.current = { ...data, started_at: event.time, ...counts, ...rest };
      return;
    }
    case "RunPaused": {
      const { run_id, reason, until } = event.data;
      if (state.current?.run_id === run_id) state.current.waiting = { reason, until };
      return;
    }
    case "RunStopRequested":
      if (state.current?.run_id === event.data.run_id) state.current.stop_requested_at ??= event.time;
      return;
    case "RecipientRequested":
      if (state.current?.run_id !== event.data.run_id || isUnnamed(event.data.recipient)) return;
      state.current.requested.push(event.data.recipient);
      return;
    case "RecipientNotReached":
    case "DryRunRecipientListed":
      answerRequests(state, event.data);
      return;
    case "DirectMessageAttempted": {
      const { attempt_id, run_id, recipient, text, account_id, campaign } = event.data;
      const account = account_id === undefined ? {} : { account_id };
      const requested = answerRequests(state, event.data) ? ({ requested: true } as const) : {};
      const rest = { ...account, ...requested, ...(campaign === undefined ? {} : { campaign }) };
      state.open.set(attempt_id, { run_id, recipient, text, attempted_at: event.time, in_doubt: false, ...rest });
      if (state.current?.run_id === run_id) state.current.places++;
      return;
    }
    case "DirectMessageSkipped":
      answerRequests(state, event.data);
      if (state.current?.run_id === event.data.run_id) state.current.skipped++;
      return;
    case "DirectMessageInDoubt":
      return markInDoubt(state, event.data.attempt_id, event.time);
    case "DirectMessageSent": {
      const { attempt_id, run_id, next_at } = event.data;
      settle(state, attempt_id, "sent");
      if (next_at !== undefined && state.current?.run_id === run_id) {
        state.current.waiting = { reason: "pace", until: next_at };
      }
      return;
    }
    case "DirectMessageFailed":
      return fail(state, event.data);
    case "DirectMessageLeft":
      // An operator has left the message in doubt. No run looks for its outcome any more, so its run counts it as in
      // doubt for good.
      state.open.delete(event.data.attempt_id);
      return;
    case "RunFinished":
    case "RunAbandoned":
    case "DryRunFinished":
      state.current = null;
      return;
    default:
  }
}

/**
 * True if the event shows that the run does not wait any more, as each event that the run appends does. A caller's
 * request for a message to a recipient has the run's id too, but does not end the wait.
 */
function isDoneBy({ run_id }: RunState, { type, data }: Folded): boolean {
  return "run_id" in data && data.run_id === run_id && type !== "RecipientRequested";
}

/** True if a caller requested a message to the recipient and the run has not recorded its outcome yet. */
export function isRequested(current: RunState | null, recipient: Recipient): boolean {
  return current?.requested.some((requested) => isSameRecipient(requested, recipient)) === true;
}

/**
 * Removes the callers' requests for a message to this recipient, because the run has recorded its outcome. Returns true
 * if there were any.
 */
function answerRequests({ current }: Run, { run_id, recipient }: { run_id: string; recipient: Recipient }): boolean {
  if (current?.run_id !== run_id || !isRequested(current, recipient)) return false;
  current.requested = current.requested.filter((requested) => !isSameRecipient(requested, recipient));
  return true;
}

/** True if two names can mean one recipient: they have the same id or, if one has no id, the same handle. */
export function isSameRecipient(one: Recipient, other: Recipient): boolean {
  if (one.id !== undefined && other.id !== undefined) return one.id === other.id;
  return one.username !== undefined && one.username.toLowerCase() === other.username?.toLowerCase();
}

function markInDoubt(state: Run, attemptId: string, at: string): void {
  const attempt = state.open.get(attemptId);
  if (attempt === undefined || attempt.in_doubt) return;
  attempt.in_doubt = true;
  attempt.doubted_at = at;
  if (state.current?.run_id === attempt.run_id) state.current.in_doubt++;
}

/** Counts a failed message. A message that was certainly not sent no longer counts toward the run's limit. */
function fail(state: Run, { attempt_id, reason, frees_quota }: DataOf<"DirectMessageFailed">): void {
  const { current } = state;
  const attempt = state.open.get(attempt_id);
  if (current !== null && attempt?.run_id === current.run_id) {
    if (frees_quota) current.places--;
    if (UNTRIED.includes(reason)) current.withdrawn++;
    // The network was never asked to send the message, so the recipient goes back to the front of the requested ones.
    if (reason === "withdrawn" && attempt.requested === true) current.requested.unshift(attempt.recipient);
  }
  settle(state, attempt_id, "failed");
}

const UNTRIED: readonly FailureReason[] = ["withdrawn", "suppressed"];

function settle(state: Run, attemptId: string, outcome: "sent" | "failed"): void {
  const attempt = state.open.get(attemptId);
  state.open.delete(attemptId);
  if (attempt === undefined || state.current?.run_id !== attempt.run_id) return;
  state.current[outcome]++;
  if (attempt.in_doubt) state.current.in_doubt--;
}
