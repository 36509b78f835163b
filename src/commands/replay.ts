import { PROJECTION_NAMES, type ProjectionName } from "../../projections/all.ts";
import { configOf, EXIT, parse, UsageError, type Command, type Terminal } from "./command.ts";
import { openExistingLog } from "./log-session.ts";
import { startProgress, type Progress } from "./progress.ts";
import { rebuild, type Rebuilt } from "./replay/rebuild.ts";
import { printable } from "./table.ts";

export const replay: Command = {
  summary: "rebuild projections from the log and say what changed",
  help: `reachlog replay [--projection NAME] [--restart] [--json]

Folds the log anew from its first event, in one pass for all projections and in a
process of its own: a service goes on serving, and takes the new states over when
they are ready. Compares each with its stored snapshot, at the snapshot's own
position. Exit code 1 when something differed (it is mended then).

Interrupted, it exits 75 (unless it is killed), and the next replay goes on from
where the work was last kept.

  --projection NAME   one of ${PROJECTION_NAMES.join(", ")}
  --restart           begin at the first event, whatever an earlier replay has kept
  --json              one JSON object for each projection
`,
  async run(args, terminal) {
    const { values } = parse(args, {
      projection: { type: "string" },
      restart: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    });
    const names = namesOf(values.projection);
    await using store = await openExistingLog(configOf(terminal));
    const told = tell(terminal, names);
    const rebuilt = await rebuild(store, names, { restart: values.restart, signal: terminal.signal, ...told });
    told.end();
    if (rebuilt === undefined) {
      terminal.err("interrupted; the next replay goes on from here\n");
      return EXIT.temporary;
    }
    for (const report of rebuilt) terminal.out(values.json ? `${JSON.stringify(report)}\n` : lineOf(report));
    return rebuilt.every(({ differences }) => (differences ?? []).length === 0) ? EXIT.ok : EXIT.fault;
  },
};

function namesOf(wanted: string | undefined): readonly ProjectionName[] {
  const names = PROJECTION_NAMES.filter((name) => wanted === undefined || wanted === name);
  if (names.length === 0) throw new UsageError(`there is no projection "${printable(wanted ?? "")}"`);
  return names;
}

/** Shows on stderr where the work is. */
function tell(terminal: Terminal, names: readonly ProjectionName[]) {
  let progress: Progress | undefined;
  return {
    onBegin(from: number, to: number): void {
      if (from > 0) terminal.err(`going on from position ${from}, where an earlier replay was interrupted\n`);
      progress = startProgress(terminal, names.length === 1 ? (names[0] ?? "") : "projections", to, from);
    },
    onProgress(position: number): void {
      progress?.update(position);
    },
    end(): void {
      progress?.end();
    },
  };
}

function lineOf({ projection, events, position, differences: found }: Rebuilt): string {
  const outcome =
    found === null
      ? "built anew, there was no snapshot to compare with"
      : found.length === 0
        ? "no difference"
        : `${found.length} differences, mended:\n  ${found.map(printable).join("\n  ")}`;
  return `${projection}: ${events} events up to position ${position}: ${outcome}\n`;
}
