import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { PROJECTION_NAMES, projectionOf, type ProjectionName } from "../../projections/all.ts";
import { decodeState, encodeState } from "../../projections/snapshot.ts";
import { differences } from "../differences.ts";
import { configOf, EXIT, parse, UsageError, type Command, type Terminal } from "./command.ts";
import { openExistingLog } from "./log-session.ts";
import { startProgress } from "./progress.ts";
import { printable } from "./table.ts";

export const replay: Command = {
  summary: "rebuild projections from the log and say what changed",
  help: `reachlog replay [--projection NAME] [--json]

Folds the whole log anew, beside a running service, compares the result with the
stored snapshot at the snapshot's own position, and stores the new state. Exit
code 1 when something differed (it is mended then).

  --projection NAME   one of ${PROJECTION_NAMES.join(", ")}
  --json              one JSON object for each projection
`,
  async run(args, terminal) {
    const { values } = parse(args, { projection: { type: "string" }, json: { type: "boolean", default: false } });
    const names = PROJECTION_NAMES.filter((name) => values.projection === undefined || values.projection === name);
    if (names.length === 0) throw new UsageError(`there is no projection "${printable(values.projection ?? "")}"`);
    await using store = await openExistingLog(configOf(terminal));
    let differing = 0;
    for (const name of names) {
      const report = await rebuild(store, name, terminal);
      if (report.differences !== null && report.differences.length > 0) differing++;
      terminal.out(values.json ? `${JSON.stringify(report)}\n` : told(report));
    }
    return differing === 0 ? EXIT.ok : EXIT.fault;
  },
};

interface Report {
  readonly projection: ProjectionName;
  /** Events folded. */
  readonly events: number;
  readonly position: number;
  /** Where the snapshot and the log disagree; null: there was no snapshot to compare with. */
  readonly differences: readonly string[] | null;
}

async function rebuild(store: EventStore<Event>, name: ProjectionName, terminal: Terminal): Promise<Report> {
  const projection = projectionOf(name);
  const { position } = await store.head();
  const snapshot = await store.snapshots.load(name);
  const comparable = snapshot?.version === projection.version ? snapshot : undefined;
  const progress = startProgress(terminal, name, position);
  let state = projection.initial();
  let shadow: string | undefined;
  let events = 0;
  for await (const event of store.read({ types: projection.types, to: position })) {
    if (comparable !== undefined && shadow === undefined && event.position > comparable.position)
      shadow = encodeState(state);
    state = projection.evolve(state, event);
    events++;
    progress.update(event.position);
  }
  progress.end();
  const rebuilt = encodeState(state);
  const compared =
    comparable === undefined ? null : differences(decodeState(comparable.state), decodeState(shadow ?? rebuilt));
  await store.snapshots.save(name, { version: projection.version, position, state: rebuilt });
  return { projection: name, events, position, differences: compared };
}

function told({ projection, events, position, differences: found }: Report): string {
  const outcome =
    found === null
      ? "built anew, there was no snapshot to compare with"
      : found.length === 0
        ? "no difference"
        : `${found.length} differences, mended:\n  ${found.map(printable).join("\n  ")}`;
  return `${projection}: ${events} events up to position ${position}: ${outcome}\n`;
}
