import type { EventStore } from "eventstore-lite";
import type { Event } from "../../../events/catalog.ts";
import type { OpenAttempt } from "../../../projections/run.ts";
import { nameOf } from "../audit/words/phrases.ts";
import { printable, table } from "../table.ts";

/** What became of messages that were in doubt. */
export interface Outcomes {
  sent: number;
  notDelivered: number;
}

/** Counts how `attempts` were settled from a position on, by whomever. */
export async function settledSince(
  store: EventStore<Event>,
  from: number,
  attempts: ReadonlyMap<string, OpenAttempt>,
): Promise<Outcomes> {
  const outcomes = { sent: 0, notDelivered: 0 };
  for await (const { type, data } of store.read({ from, types: ["DirectMessageSent", "DirectMessageFailed"] })) {
    if (!("attempt_id" in data) || !attempts.has(data.attempt_id)) continue;
    if (type === "DirectMessageSent") outcomes.sent++;
    else outcomes.notDelivered++;
  }
  return outcomes;
}

export interface Settlement {
  readonly inDoubt: number;
  readonly outcomes: Outcomes;
  readonly stay: readonly OpenAttempt[];
  /** A run whose process had died. */
  readonly closed: string | undefined;
}

/** Says what was found, and lists what stays in doubt. */
export function settlementText({ inDoubt, outcomes, stay, closed }: Settlement): string {
  const { sent, notDelivered } = outcomes;
  const counts = `${inDoubt} in doubt: ${sent} found sent, ${notDelivered} not delivered, ${stay.length} still in doubt\n`;
  const run = closed === undefined ? "" : `run ${printable(closed)}, whose process had died, was closed\n`;
  if (stay.length === 0) return counts + run;
  const rows = stay.map(({ recipient, attempted_at, run_id }) => [nameOf(recipient), attempted_at, run_id]);
  return `${counts}${run}\n${table(["in doubt", "since", "run"], rows)}`;
}
