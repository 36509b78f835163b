import type { OpenAttempt, Run } from "../../projections/current-run.ts";
import { listConfiguredChannels } from "../config/optional-parts.ts";
import { configurationError } from "../config/configuration-error.ts";
import { createAnnounce } from "../delivery/suspend-channel-and-alert-operator.ts";
import { countSettled } from "../outreach/settle-messages-in-doubt.ts";
import { createRunner } from "../outreach/start-run.ts";
import type { Logger } from "../platform/logger.ts";
import { connectNetworks } from "./connect-networks.ts";
import { openAccount, outreachContext } from "./open-account-and-outreach.ts";
import type { Reachlog } from "../privacy/log-context-types.ts";

/** Shows an operator the progress while messages in doubt are settled. */
export interface ReconcileView extends Disposable {
  readonly logger: Logger;
}

/** Result of settling the messages in doubt. */
export interface Reconciled {
  readonly kind: "reconciled";
  readonly in_doubt: number;
  readonly sent: number;
  readonly not_delivered: number;
  readonly still_in_doubt: readonly OpenAttempt[];
  /** Id of the run of a dead process that was closed; null if there was none. */
  readonly closed_run: string | null;
  /** True if no message was in doubt and no run was open. */
  readonly isIdle: boolean;
}

/**
 * Settles messages in doubt by reading their conversations, and closes the run of a dead process; a service may run at
 * the same time. Returns `running` if a run in progress settles them. Throws a ServiceError (configuration) without X.
 */
export async function reconcileAttempts(
  context: Reachlog,
  openView: () => ReconcileView,
  interrupt: { readonly signal: AbortSignal },
): Promise<Reconciled | { readonly kind: "running"; readonly run_id: string | undefined }> {
  const { eventLog, projector } = context;
  const runState = (): Run => projector.state("run");
  const { current, open } = runState();
  const isIdle = open.size === 0 && current === null;
  const before = new Map(open);
  const from = projector.position + 1;
  const none = { in_doubt: 0, sent: 0, not_delivered: 0, still_in_doubt: [], closed_run: null };
  if (isIdle) return { kind: "reconciled", ...none, isIdle };
  const settled = await settle(context, openView, interrupt);
  if (settled.kind === "running") return { kind: "running", run_id: settled.run_id };
  await projector.until((await eventLog.store.head()).position);
  const outcomes = await countSettled(eventLog.store, from, before);
  const closed_run = current !== null && runState().current?.run_id !== current.run_id ? current.run_id : null;
  const still_in_doubt = [...before].flatMap(([id, attempt]) => (runState().open.has(id) ? [attempt] : []));
  return { kind: "reconciled", in_doubt: before.size, ...outcomes, still_in_doubt, closed_run, isIdle };
}

async function settle(context: Reachlog, openView: () => ReconcileView, interrupt: { readonly signal: AbortSignal }) {
  using view = openView();
  const { logger } = view;
  const { config, clock } = context;
  const { social } = connectNetworks(config, clock);
  if (social === undefined) {
    const problem = "not set, so X cannot be asked";
    throw configurationError([{ variable: "X_CLIENT_ID", problem, wanted: "the app's id" }]);
  }
  // If this process finds that the account's authorization has ended, it appends an announcement to the log, which the
  // service delivers.
  const shown = { ...context, logger };
  const announce = createAnnounce(shown, context.projector, listConfiguredChannels(config));
  const working = { ...shown, announce };
  await using account = openAccount(working, social);
  await using runner = createRunner(outreachContext(working, account));
  const stop = (): void => void runner[Symbol.asyncDispose]();
  interrupt.signal.addEventListener("abort", stop, { once: true });
  return await runner.reconcile();
}
