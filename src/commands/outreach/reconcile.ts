import type { KnownRecipient } from "../../../events/outreach.ts";
import { formatRecipient } from "../../history/sentences/sentence-parts.ts";
import { systemClock } from "../../platform/clock-ids-and-timers.ts";
import { createLogger } from "../../platform/logger.ts";
import { type Reconciled, reconcileAttempts, type ReconcileView } from "../../service/reconcile-messages.ts";
import { Command, JSON_OPTION, type MakeCommand } from "../shared/command.ts";
import { openExistingReachlog, recordRead } from "../shared/open-log-and-record-reads.ts";
import { startStatusLine } from "../shared/progress.ts";
import { answer, EXIT, type Terminal, printable, table } from "../shared/terminal-answers-and-exit-codes.ts";
import type { Reachlog } from "../../privacy/log-context-types.ts";

export const reconcile: MakeCommand = (terminal) =>
  new Command("reconcile")
    .summary("settle messages whose outcome is unknown")
    .description(
      `Settles messages whose outcome is unknown, by reading the conversations: twice,
IN_DOUBT_SETTLE_SECONDS apart, before one counts as not delivered. X may show a
message late, so the command waits and says so. Also closes the run of a process
that died. Sends nothing. Exit code 1 if some stay in doubt, 75 while a run is in
progress: it settles its messages itself.`,
    )
    .option(...JSON_OPTION)
    .examples("reachlog outreach reconcile")
    .action(({ json }) => settleAndShow(terminal, json));

async function settleAndShow(terminal: Terminal, json: true | undefined): Promise<number | void> {
  await using context = await openExistingReachlog(terminal);
  const settled = await reconcileAttempts(context, () => openView(terminal, context), terminal);
  if (settled.kind === "running") {
    const which = settled.run_id === undefined ? "a run" : `run ${printable(settled.run_id)}`;
    terminal.err(`${which} is in progress; it settles messages in doubt at its end\n`);
    return EXIT.temporary;
  }
  const { still_in_doubt: stay, isIdle } = settled;
  if (stay.length > 0) await recordRead(terminal, context.eventLog.store, { resource: "run", records: stay.length });
  const { in_doubt, sent, not_delivered, closed_run } = settled;
  const still_in_doubt = stay.map(({ recipient, attempted_at, run_id }) => ({ recipient, attempted_at, run_id }));
  const settlement = { in_doubt, sent, not_delivered, still_in_doubt, closed_run };
  answer(terminal, json, settlement, settlementText(settlement));
  if (isIdle) return undefined;
  if (terminal.signal.aborted) return Number(terminal.signal.reason);
  return stay.length === 0 ? EXIT.ok : EXIT.fault;
}

/** Shows the progress of settling messages in doubt, and why one stays in doubt. */
function openView(terminal: Terminal, context: Reachlog): ReconcileView {
  const startedAt = performance.now();
  const seconds = context.config.outreach.inDoubtSettleSeconds;
  const { size: count } = context.projector.state("run").open;
  if (count > 0)
    terminal.err(
      `${count} in doubt: conversations are read twice, ${seconds} s apart, since X may show a message late\n`,
    );
  const status = startStatusLine(terminal, () => {
    const { size } = context.projector.state("run").open;
    const passed = Math.floor((performance.now() - startedAt) / 1000);
    return `${size} in doubt; conversations are read twice, ${seconds} s apart: ${passed} s so far`;
  });
  // Why a message stays in doubt is logged as a warning, so this logger shows warnings at every LOG_LEVEL.
  const logger = createLogger("warn", (line) => status.above(() => terminal.err(line)), systemClock);
  return { logger, [Symbol.dispose]: status[Symbol.dispose] };
}

/** A message that is still in doubt, as in the command's JSON: without its text. */
interface StillInDoubt {
  readonly recipient: KnownRecipient;
  readonly attempted_at: string;
  readonly run_id: string;
}

type Settlement = Omit<Reconciled, "kind" | "still_in_doubt" | "isIdle"> & {
  readonly still_in_doubt: readonly StillInDoubt[];
};

/** Formats the result of reconciling for people: what was settled, and a list of messages that stay in doubt. */
function settlementText({ in_doubt, sent, not_delivered, still_in_doubt: stay, closed_run }: Settlement): string {
  if (in_doubt === 0 && closed_run === null) return "nothing is in doubt\n";
  const counts = `${in_doubt} in doubt: ${sent} found sent, ${not_delivered} not delivered, ${stay.length} still in doubt\n`;
  const run = closed_run === null ? "" : `run ${printable(closed_run)} was closed after its process died\n`;
  if (stay.length === 0) return counts + run;
  const rows = stay.map(({ recipient, attempted_at, run_id }) => [formatRecipient(recipient), attempted_at, run_id]);
  return `${counts}${run}\n${table(["in doubt", "since", "run"], rows)}`;
}
