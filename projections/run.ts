import type { DataOf, Folded } from "../events/catalog.ts";
import type { FailureReason, KnownRecipient, PauseReason } from "../events/outreach.ts";
import type { Projection } from "./projection.ts";

/** An intent whose outcome is not final: just attempted, or in doubt. */
export interface OpenAttempt {
  run_id: string;
  recipient: KnownRecipient;
  text: string;
  /** When the intent was recorded, ISO 8601. */
  attempted_at: string;
  in_doubt: boolean;
  /** The account that sent it; absent in older events. */
  account_id?: string;
  /** When it was found to be in doubt. The request left after the intent, and minutes later if a 429 was waited for. */
  doubted_at?: string;
}

export interface RunState extends Omit<DataOf<"RunStarted">, "rules"> {
  started_at: string;
  sent: number;
  skipped: number;
  failed: number;
  in_doubt: number;
  /** Messages of this run that it sent, or may have sent. */
  places: number;
  /** The `failed` messages that the run never asked the network to send. */
  withdrawn: number;
  /** Why the run waits, and until when (ISO 8601); null while it works. */
  waiting: { reason: PauseReason; until: string } | null;
  /** When a stop was requested, ISO 8601; null if none was. */
  stop_requested_at: string | null;
}

/** The run in progress, and every attempt that still waits for its outcome, including those of earlier runs. */
export interface Run {
  current: RunState | null;
  open: Map<string, OpenAttempt>;
}

export const run: Projection<Run> = {
  name: "run",
  version: 9,
  types: [
    "RunStarted",
    "RunPaused",
    "RunStopRequested",
    "DirectMessageAttempted",
    "DirectMessageSent",
    "DirectMessageSkipped",
    "DirectMessageFailed",
    "DirectMessageInDoubt",
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
      state.current = { ...data, started_at: event.time, ...counts, waiting: null, stop_requested_at: null };
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
    case "DirectMessageAttempted": {
      const { attempt_id, run_id, recipient, text, account_id } = event.data;
      const account = account_id === undefined ? {} : { account_id };
      state.open.set(attempt_id, { run_id, recipient, text, attempted_at: event.time, in_doubt: false, ...account });
      if (state.current?.run_id === run_id) state.current.places++;
      return;
    }
    case "DirectMessageSkipped":
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
    case "RunFinished":
    case "RunAbandoned":
    case "DryRunFinished":
      state.current = null;
      return;
    default:
  }
}

/** Any later event of the run ends its waiting; events that others append do not. */
function isDoneBy({ run_id }: RunState, { data }: Folded): boolean {
  return "run_id" in data && data.run_id === run_id;
}

function markInDoubt(state: Run, attemptId: string, at: string): void {
  const attempt = state.open.get(attemptId);
  if (attempt === undefined || attempt.in_doubt) return;
  attempt.in_doubt = true;
  attempt.doubted_at = at;
  if (state.current?.run_id === attempt.run_id) state.current.in_doubt++;
}

/** A message that was certainly not sent gives its place back. */
function fail(state: Run, { attempt_id, reason, frees_quota }: DataOf<"DirectMessageFailed">): void {
  const { current } = state;
  if (current !== null && state.open.get(attempt_id)?.run_id === current.run_id) {
    if (frees_quota) current.places--;
    if (UNTRIED.includes(reason)) current.withdrawn++;
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
