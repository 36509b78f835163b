import { run as runProjection, type RunState } from "../../../projections/current-run.ts";
import { foldTo } from "../../projector/fold-to-moment.ts";
import { toEventJson } from "../../history/event-json.ts";
import { Command, type MakeCommand } from "../shared/command.ts";
import { openExistingLog, recordRead } from "../shared/open-log-and-record-reads.ts";
import { startStatusLine } from "../shared/progress.ts";
import type { Folded } from "../../../events/event-types-and-codec.ts";
import type { PauseReason, Usage } from "../../../events/outreach.ts";
import { describeEvent } from "../../history/event-sentences.ts";
import { describeSelection, formatCounts } from "../../history/sentences/outreach.ts";
import { formatSentence, plain } from "../../history/sentences/sentence-parts.ts";
import { printable } from "../shared/terminal-answers-and-exit-codes.ts";

export const watch: MakeCommand = (terminal) =>
  new Command("watch")
    .summary("follow the run in progress, or wait for the next one")
    .description(
      `Follows the run in progress, or waits for the next one. Prints a line for each
event and, on a terminal, the run's progress and what it waits for. Ends with the
run. If interrupted, it exits 130 and the run continues.`,
    )
    .option("--json", "write each event as a JSON object")
    .examples("reachlog outreach watch")
    .action(async ({ json }) => {
      await using store = await openExistingLog(terminal);
      const { states, position } = await foldTo(store, ["run"]);
      await recordRead(terminal, store, { resource: "run" });
      let state = states.run;
      const { signal } = terminal;
      using status = startStatusLine(terminal, () => formatStatus(state.current, store.logClock.now()));
      const note = json === true ? terminal.err : terminal.out;
      const begun =
        state.current === null ? "no run is in progress; waiting for the next one\n" : formatHeader(state.current);
      status.above(() => note(begun));
      for await (const event of store.subscribe({ from: position + 1, types: WATCHED, signal })) {
        const before = state.current;
        state = runProjection.evolve(state, event);
        if (before === null && state.current === null) continue;
        const end = formatEnd(event);
        const text =
          end ??
          (event.type === "RunStarted" && state.current !== null
            ? formatHeader(state.current)
            : `${event.time} ${printable(describeEvent(event))}\n`);
        status.above(() => terminal.out(json === true ? `${JSON.stringify(toEventJson(event))}\n` : text));
        if (end !== undefined) return undefined;
      }
      // The reason of the abort is the exit code that a shell expects after the signal.
      return Number(signal.reason);
    });

/**
 * Event types that the command shows while it watches a run. `RecipientAdded` is left out, because an import adds
 * recipients by the thousand, and is not part of the run.
 */
const WATCHED = runProjection.types.filter((type) => type !== "RecipientAdded");

const WAITS: Readonly<Record<PauseReason, string>> = {
  pace: "to spread the messages",
  rate_limited: "because X asks to",
  network_unavailable: "because X does not answer",
  settling: "for X to show a message in doubt",
  window_closed: "for the sending window",
};

function formatHeader({ run_id, dry_run, started_at, ...run }: RunState): string {
  const asked = printable(formatSentence(describeSelection(run)));
  return `${dry_run ? "dry run" : "run"} ${printable(run_id)}${asked}, started ${started_at}: ${formatCounts(run)} so far\n`;
}

/** Describes the progress of the watched run; `now` is in ms since the epoch. */
export function formatStatus(run: RunState | null, now: number): string {
  if (run === null) return "no run is in progress";
  const { waiting, stop_requested_at } = run;
  if (stop_requested_at !== null) return `${formatCounts(run)}; asked to stop`;
  if (waiting === null) return formatCounts(run);
  const left = Math.max(0, Math.ceil((Date.parse(waiting.until) - now) / 1000));
  const until = printable(waiting.until.slice("2026-11-20T".length, "2026-11-20T10:00:00".length));
  return `${formatCounts(run)}; waits until ${until}Z (${formatClock(left)}) ${WAITS[waiting.reason]}`;
}

/** Describes how the watched run ended. Undefined if the event ends no run. */
function formatEnd(event: Folded): string | undefined {
  switch (event.type) {
    case "RunFinished": {
      const { reason, until, usage } = event.data;
      return `${event.time} ended, ${plain(reason)}${formatUntil(until)}: ${formatCounts(event.data)}${formatCost(usage)}\n`;
    }
    case "DryRunFinished": {
      const { reason, until, would_send, would_skip, usage } = event.data;
      const found = `it would send to ${would_send} and skip ${would_skip}`;
      return `${event.time} ended, ${plain(reason)}${formatUntil(until)}: ${found}${formatCost(usage)}\n`;
    }
    case "RunAbandoned":
      return `${event.time} closed after its process died: ${formatCounts(event.data)}\n`;
    default:
      return undefined;
  }
}

export function formatUntil(until: string | undefined): string {
  return until === undefined ? "" : ` until ${printable(until)}`;
}

function formatCost(usage: Usage | undefined): string {
  return usage === undefined ? "" : `; cost at most ${usage.usd.toFixed(2)} USD`;
}

/** Formats whole seconds as a clock shows them, such as 1:02:03. */
function formatClock(seconds: number): string {
  const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  const rest = two(seconds % 60);
  return minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${rest}`;
}
