import type { Recorded } from "../../../events/catalog.ts";
import { run as runProjection, type Run, type RunState } from "../../../projections/run.ts";
import { foldTo } from "../../projector/fold-to.ts";
import type { OpenedLog } from "../../service/open.ts";
import { formatEventJson } from "../audit/show/lines.ts";
import { Command, readConfig, EXIT, type MakeCommand, type Terminal } from "../shared/command.ts";
import { openExistingLog } from "../shared/log-session.ts";
import { formatEnd, eventLine, headerLine, formatStatus, startStatusLine } from "./watch-lines.ts";

export const watch: MakeCommand = (terminal, exit) =>
  new Command("watch")
    .summary("follow the run in progress, or wait for the next one")
    .description(
      `Follows the run in progress, or waits for the next one: a line for each event, and
on a terminal where the run stands and what it waits for. Ends with the run;
interrupted, it exits 130, and the run goes on.`,
    )
    .option("--json", "write each event as a JSON object")
    .addHelpText("after", "\nExample:\n  reachlog outreach watch")
    .action(
      exit(async ({ json }) => {
        await using store = await openExistingLog(readConfig(terminal));
        const folded = await foldTo(store, ["run"]);
        return await follow(terminal, store, {
          json: json === true,
          state: folded.states.run,
          from: folded.position + 1,
        });
      }),
    );

interface Following {
  readonly json: boolean;
  /** As of the event before `from`. */
  readonly state: Run;
  readonly from: number;
}

/** What is shown of a run. An import beside it may be of thousands, and is no part of it. */
const WATCHED = runProjection.types.filter((type) => type !== "RecipientAdded");

/** Follows one run to its end. Answers the exit code. */
async function follow(terminal: Terminal, store: OpenedLog, following: Following): Promise<number> {
  let { state } = following;
  const { from, json } = following;
  const { signal } = terminal;
  using status = startStatusLine(terminal, () => formatStatus(state.current, store.logClock.now()));
  const note = (text: string): void => status.above(() => (json ? terminal.err(text) : terminal.out(text)));
  note(state.current === null ? "no run is in progress; waiting for the next one\n" : headerLine(state.current));
  for await (const event of store.subscribe({ from, types: WATCHED, signal })) {
    const before = state.current;
    state = runProjection.evolve(state, event);
    if (before === null && state.current === null) continue;
    const end = formatEnd(event);
    status.above(() => terminal.out(json ? formatEventJson(event) : (end ?? formatLine(event, state.current))));
    if (end !== undefined) return EXIT.ok;
  }
  // The signal's reason is the code that a shell expects of it.
  return Number(signal.reason);
}

function formatLine(event: Recorded, current: RunState | null): string {
  return event.type === "RunStarted" && current !== null ? headerLine(current) : eventLine(event);
}
