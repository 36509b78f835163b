import type { EventStore, Query } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { stats as projection } from "../../projections/stats.ts";
import { configOf, EXIT, parse, UsageError, type Command } from "./command.ts";
import { openExistingLog } from "./log-session.ts";

export const stats: Command = {
  summary: "show the all-time counts, also of an earlier moment",
  help: `reachlog stats [--as-of TIME|POSITION] [--json]

Messages sent, skipped and failed, counted from the log.

  --as-of M   as they were at a time (ISO 8601, such as 2026-11-21T09:00:00Z)
              or after the event at a position
  --json      one JSON object
`,
  async run(args, terminal) {
    const { values } = parse(args, { "as-of": { type: "string" }, json: { type: "boolean", default: false } });
    const moment = momentOf(values["as-of"]);
    await using store = await openExistingLog(configOf(terminal));
    const { position, time, counts } = await countAsOf(store, moment);
    const { sent, skipped, failed } = counts;
    if (values.json) terminal.out(`${JSON.stringify({ sent, skipped, failed, as_of: { position, time } })}\n`);
    else
      terminal.out(
        `sent ${sent}, skipped ${skipped}, failed ${failed} (as of position ${position}, ${time ?? "empty log"})\n`,
      );
    return EXIT.ok;
  },
};

async function countAsOf(store: EventStore<Event>, moment: Query) {
  let counts = projection.initial();
  for await (const event of store.read({ ...moment, types: projection.types }))
    counts = projection.evolve(counts, event);
  for await (const last of store.read({ ...moment, backwards: true, limit: 1 })) {
    return { counts, position: last.position, time: last.time };
  }
  return { counts, position: 0, time: null };
}

/** A position or a time as the bounds of a query. */
function momentOf(text: string | undefined): Query {
  if (text === undefined) return {};
  if (/^\d+$/.test(text)) return { to: Number(text) };
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) throw new UsageError("--as-of wants a position or an ISO 8601 time");
  return { until: time };
}
