import type { LogStore } from "../../../events/catalog.ts";
import type { OpenAttempt, Run } from "../../../projections/run.ts";
import { systemClock } from "../../platform/clock.ts";
import { createAnnounce } from "../../delivery/suspension.ts";
import { configurationError } from "../../config/error.ts";
import { createLogger } from "../../platform/logger.ts";
import { createRunner } from "../../outreach/start-run.ts";
import { connectNetworks } from "../../service/networks.ts";
import { openAccount, outreachContext } from "../../service/outreach.ts";
import { Command, JSON_OPTION, type MakeCommand } from "../shared/command.ts";
import { answer, EXIT, type Terminal, printable, table } from "../shared/terminal.ts";
import { openSession, recordRead } from "../shared/log-session.ts";
import type { Session } from "../../service/session.ts";
import { formatRecipient } from "../../history/words/sentence.ts";
import { startStatusLine } from "../shared/progress.ts";

export const reconcile: MakeCommand = (terminal) =>
  new Command("reconcile")
    .summary("settle messages whose outcome is unknown")
    .description(
      `Settles messages whose outcome is unknown, by reading the conversations: twice,
IN_DOUBT_SETTLE_SECONDS apart, before one counts as not delivered. X may show a
message late, so the command waits and says so. Also closes the run of a process
that died. Sends nothing. Exit code 1 when some stay in doubt, 75 while a run is
in progress, which does it itself.`,
    )
    .option(...JSON_OPTION)
    .examples("reachlog outreach reconcile")
    .action(({ json }) => reconcileAttempts(terminal, json));

async function reconcileAttempts(terminal: Terminal, json: true | undefined): Promise<number | void> {
  await using session = await openSession(terminal);
  const show = (settlement: Settlement): void => answer(terminal, json, settlement, settlementText(settlement));
  const runState = (): Run => session.projector.state("run");
  const { current, open } = runState();
  if (open.size === 0 && current === null) {
    return show({ in_doubt: 0, sent: 0, not_delivered: 0, still_in_doubt: [], closed_run: null });
  }
  const before = new Map(open);
  const from = session.projector.position + 1;
  const settled = await settle(terminal, session);
  if (settled.kind === "running") {
    const which = settled.run_id === undefined ? "a run" : `run ${printable(settled.run_id)}`;
    terminal.err(`${which} is in progress; it settles what is in doubt at its end\n`);
    return EXIT.temporary;
  }
  await session.projector.until((await session.eventLog.store.head()).position);
  const outcomes = await settledSince(session.eventLog.store, from, before);
  const closed_run = current !== null && runState().current?.run_id !== current.run_id ? current.run_id : null;
  const stay = [...before].flatMap(([id, attempt]) => (runState().open.has(id) ? [attempt] : []));
  if (stay.length > 0) await recordRead(terminal, session.eventLog.store, { resource: "run", records: stay.length });
  const still_in_doubt = stay.map(({ recipient, attempted_at, run_id }) => ({ recipient, attempted_at, run_id }));
  show({ in_doubt: before.size, ...outcomes, still_in_doubt, closed_run });
  if (terminal.signal.aborted) return Number(terminal.signal.reason);
  return stay.length === 0 ? EXIT.ok : EXIT.fault;
}

/** Lets the runner settle what is in doubt, and shows its progress. */
async function settle(terminal: Terminal, session: Session) {
  const startedAt = performance.now();
  const seconds = session.config.outreach.inDoubtSettleSeconds;
  const { size: count } = session.projector.state("run").open;
  if (count > 0)
    terminal.err(
      `${count} in doubt: conversations are read twice, ${seconds} s apart, since X may show a message late\n`,
    );
  using status = startStatusLine(terminal, () => {
    const { size } = session.projector.state("run").open;
    const passed = Math.floor((performance.now() - startedAt) / 1000);
    return `${size} in doubt; conversations are read twice, ${seconds} s apart: ${passed} s so far`;
  });
  // Why a message stays in doubt is a warning, whatever the service's own log is to hold.
  const logger = createLogger("warn", (line) => status.above(() => terminal.err(line)), systemClock);
  const { channels, social } = connectNetworks(session.config, session.logClock.now);
  if (social === undefined) {
    const problem = "not set, so X cannot be asked";
    throw configurationError([{ variable: "X_CLIENT_ID", problem, wanted: "the app's id" }]);
  }
  // An append, which the service delivers: only this command has found the grant dead.
  const announce = createAnnounce({ ...session, configured: channels.map(({ name }) => name), logger });
  const base = { ...session, logger, announce };
  await using account = openAccount({ ...base, social });
  await using runner = createRunner(outreachContext({ ...base, account }));
  const stop = (): void => void runner[Symbol.asyncDispose]();
  terminal.signal.addEventListener("abort", stop, { once: true });
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

interface Settlement {
  readonly in_doubt: number;
  readonly sent: number;
  readonly not_delivered: number;
  readonly still_in_doubt: readonly Pick<OpenAttempt, "recipient" | "attempted_at" | "run_id">[];
  /** A run whose process had died. */
  readonly closed_run: string | null;
}

/** Says what was found, and lists what stays in doubt. */
function settlementText({ in_doubt, sent, not_delivered, still_in_doubt: stay, closed_run }: Settlement): string {
  if (in_doubt === 0 && closed_run === null) return "nothing is in doubt\n";
  const counts = `${in_doubt} in doubt: ${sent} found sent, ${not_delivered} not delivered, ${stay.length} still in doubt\n`;
  const run = closed_run === null ? "" : `run ${printable(closed_run)} was closed after its process died\n`;
  if (stay.length === 0) return counts + run;
  const rows = stay.map(({ recipient, attempted_at, run_id }) => [formatRecipient(recipient), attempted_at, run_id]);
  return `${counts}${run}\n${table(["in doubt", "since", "run"], rows)}`;
}
