import type { LogStore } from "../../events/catalog.ts";
import type { OpenAttempt, Run } from "../../projections/run.ts";
import { configurationError } from "../config/error.ts";
import { createAnnounce } from "../delivery/suspension.ts";
import { createRunner } from "../outreach/start-run.ts";
import type { Logger } from "../platform/logger.ts";
import { connectNetworks } from "./networks.ts";
import { openAccount, outreachContext } from "./outreach.ts";
import type { Session } from "./session.ts";

/** Shows an operator the work while it lasts. */
export interface ReconcileView extends Disposable {
  readonly logger: Logger;
}

/** How the messages in doubt were settled. */
export interface Reconciled {
  readonly kind: "reconciled";
  readonly in_doubt: number;
  readonly sent: number;
  readonly not_delivered: number;
  readonly still_in_doubt: readonly OpenAttempt[];
  /** The run that was closed because its process had died. */
  readonly closed_run: string | null;
  /** True if nothing was in doubt, and no run was open. */
  readonly isIdle: boolean;
}

/**
 * Settles messages in doubt by reading the conversations, also while a service runs, and closes the run of a process
 * that died. `running` means that a run in progress does it itself. Throws a ServiceError (configuration) without X.
 */
export async function reconcileAttempts(
  session: Session,
  openView: () => ReconcileView,
  interrupt: { readonly signal: AbortSignal },
): Promise<Reconciled | { readonly kind: "running"; readonly run_id: string | undefined }> {
  const { eventLog, projector } = session;
  const runState = (): Run => projector.state("run");
  const { current, open } = runState();
  const isIdle = open.size === 0 && current === null;
  const before = new Map(open);
  const from = projector.position + 1;
  const none = { in_doubt: 0, sent: 0, not_delivered: 0, still_in_doubt: [], closed_run: null };
  if (isIdle) return { kind: "reconciled", ...none, isIdle };
  const settled = await settle(session, openView, interrupt);
  if (settled.kind === "running") return { kind: "running", run_id: settled.run_id };
  await projector.until((await eventLog.store.head()).position);
  const outcomes = await settledSince(eventLog.store, from, before);
  const closed_run = current !== null && runState().current?.run_id !== current.run_id ? current.run_id : null;
  const still_in_doubt = [...before].flatMap(([id, attempt]) => (runState().open.has(id) ? [attempt] : []));
  return { kind: "reconciled", in_doubt: before.size, ...outcomes, still_in_doubt, closed_run, isIdle };
}

async function settle(session: Session, openView: () => ReconcileView, interrupt: { readonly signal: AbortSignal }) {
  using view = openView();
  const { logger } = view;
  const { channels, social } = connectNetworks(session.config, session.logClock.now);
  if (social === undefined) {
    const problem = "not set, so X cannot be asked";
    throw configurationError([{ variable: "X_CLIENT_ID", problem, wanted: "the app's id" }]);
  }
  // Appends the announcement for the service to deliver: only this command has found the grant dead.
  const announce = createAnnounce({ ...session, configured: channels.map(({ name }) => name), logger });
  const base = { ...session, logger, announce };
  await using account = openAccount({ ...base, social });
  await using runner = createRunner(outreachContext({ ...base, account }));
  const stop = (): void => void runner[Symbol.asyncDispose]();
  interrupt.signal.addEventListener("abort", stop, { once: true });
  return await runner.reconcile();
}

/** Counts how `attempts` were settled from a position on, by any process. */
async function settledSince(store: LogStore, from: number, attempts: ReadonlyMap<string, OpenAttempt>) {
  const outcomes = { sent: 0, not_delivered: 0 };
  for await (const { type, data } of store.read({ from, types: ["DirectMessageSent", "DirectMessageFailed"] })) {
    if (!("attempt_id" in data) || !attempts.has(data.attempt_id)) continue;
    if (type === "DirectMessageSent") outcomes.sent++;
    else outcomes.not_delivered++;
  }
  return outcomes;
}
