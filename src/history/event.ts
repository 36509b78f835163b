import type { Recorded } from "../../events/catalog.ts";
import { inOrder } from "../log/events-at.ts";
import { findDispatches, readRequestedChannels, sourcesOfEvent } from "./dispatches.ts";
import { findEvent, positionBefore } from "./find-event.ts";
import type { Dispatches, History, Reading } from "./history.ts";
import { isOfOneRecipient, positionsOfRuns } from "./runs.ts";

/** What belongs to one event, or to one run, which is found by its start. */
export interface EventHistory extends History {
  readonly event: Recorded;
}

/**
 * One event, and everything that caused it or that it caused: the same request, the same message or run, the
 * dispatches that it requests or is about. `id`: its id or position, or a run's id. Undefined: the log has no such event.
 */
export async function historyOfEvent(reading: Reading, id: string): Promise<EventHistory | undefined> {
  const asked = await findEvent(reading, id);
  if (asked === undefined) return undefined;
  // A run's request caused all of its messages: the history of one of them leaves out the others.
  const roots = isOfOneRecipient(asked) ? [asked] : [asked, ...(await sameRequest(reading, asked))];
  const { dispatches, positions: ofDispatches } = await findEventDispatches(reading, roots);
  const positions = inOrder([
    ...roots.map(({ position }) => position),
    ...(await positionsOfRuns(reading, roots)),
    ...ofDispatches,
  ]);
  return { positions, dispatches, event: asked };
}

/** A request is answered within 5 minutes (`Prefer: wait=300`); what it appends lies within twice that of each other. */
const REQUEST_MS = 10 * 60_000;

/** What the same request appended, or another one of the same trace at that time; of a run, its first minutes. */
async function sameRequest(reading: Reading, { time, meta }: Recorded): Promise<readonly Recorded[]> {
  const { request_id, traceparent } = meta;
  if (request_id === undefined && traceparent === undefined) return [];
  const { store, to, onProgress } = reading;
  const ms = Date.parse(time);
  const from = (await positionBefore(reading, ms - REQUEST_MS)) + 1;
  const found: Recorded[] = [];
  for await (const event of store.read({ from, to, until: new Date(ms + REQUEST_MS) })) {
    onProgress(event.position);
    const isSame = request_id !== undefined && event.meta.request_id === request_id;
    if (isSame || (traceparent !== undefined && event.meta.traceparent === traceparent)) found.push(event);
  }
  return found;
}

/** The dispatches that the roots request or are about: the requesting events, and all outcomes. */
async function findEventDispatches(
  reading: Reading,
  roots: readonly Recorded[],
): Promise<{ readonly dispatches: Dispatches; readonly positions: readonly number[] }> {
  const findChannels = await readRequestedChannels(reading);
  const sources = (await Promise.all(roots.map((root) => sourcesOfEvent(reading, findChannels, root)))).flat();
  const requested = new Map(sources.map((source) => [source.position, findChannels(source)]));
  const positions = [...requested.keys()];
  const dispatches = await findDispatches(reading, requested, ({ position }) => void positions.push(position));
  return { dispatches, positions };
}
