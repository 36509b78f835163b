import type { EventLike, EventType, Recorded } from "../../events/event-types-and-codec.ts";
import { STREAMS } from "../log/event-log.ts";
import { parseIdTime, positionBefore, type Reading } from "./find-event.ts";

/**
 * Event types about the course of a run. They are shown in the run's history, but not in that of one of its messages.
 */
const COURSE_TYPES: readonly EventType[] = ["RunPaused", "InboxRead", "SourceRead"];

/** Types of all events that a run appends about itself and its recipients. */
const RUN_TYPES: readonly EventType[] = [
  ...COURSE_TYPES,
  "RunStarted",
  "RunStopRequested",
  "RecipientRequested",
  "RecipientNotReached",
  "DirectMessageAttempted",
  "DirectMessageSent",
  "DirectMessageSkipped",
  "DirectMessageFailed",
  "DirectMessageInDoubt",
  "DirectMessageLeft",
  "DryRunRecipientListed",
  "RecipientRetryAllowed",
  "RunFinished",
  "RunAbandoned",
  "DryRunFinished",
];

/** True if an event of a run is about one recipient, and not about the run as a whole. */
export function isOfOneRecipient({ data }: EventLike): boolean {
  return "run_id" in data && "recipient" in data;
}

/**
 * Returns the positions of the events of all runs that the events `roots` name. If all roots that name a run are about
 * single recipients, the result has only those recipients' messages and the run's start, stop requests and end.
 */
export async function positionsOfRuns({ store, to, onProgress }: Reading, roots: readonly EventLike[]) {
  const runs = new Set(roots.flatMap(runIds));
  if (runs.size === 0) return [];
  const whole = new Set(roots.filter((root) => !isOfOneRecipient(root)).flatMap(runIds));
  const attempts = new Set(roots.flatMap(attemptIds));
  const belongs = (event: EventLike): boolean =>
    (!isOfOneRecipient(event) && !COURSE_TYPES.includes(event.type)) ||
    runIds(event).some((run) => whole.has(run)) ||
    attemptIds(event).some((attempt) => attempts.has(attempt));
  const found: number[] = [];
  for await (const batch of store.readFolded({ types: RUN_TYPES, to })) {
    onProgress(batch.at(-1)?.position ?? 0);
    for (const event of batch) {
      if (runIds(event).some((run) => runs.has(run)) && belongs(event)) found.push(event.position);
    }
  }
  return found;
}

/**
 * Maximum number of events read to find those of one run. Only one run is in progress at a time, so nearly all events
 * of these types belong to it.
 */
const READ_MAX = 5_000;

/** Maximum assumed difference between the clocks of instances and of the store, in ms. */
const CLOCK_MS = 60_000;

/**
 * Maximum number of starts of runs read to find one by its id. The time in the id may be wrong by {@link CLOCK_MS}, and
 * this many runs may start within that time.
 */
const STARTS_MAX = 1_000;

/**
 * Returns a page of the events of the run with a UUIDv7 id, oldest first, from position `from` or else from the run's
 * start, which the id's time helps to find. `next`: where the next page begins; undefined on the last page.
 */
export async function eventsOfRun(
  reading: Reading,
  run_id: string,
  { from, limit }: { readonly from: number | undefined; readonly limit: number },
): Promise<{ readonly events: readonly Recorded[]; readonly next: number | undefined }> {
  const { store, to } = reading;
  const events: Recorded[] = [];
  const start = from ?? (await findRunStart(reading, run_id));
  if (start === undefined) return { events, next: undefined };
  let left = READ_MAX;
  for await (const event of store.read({ stream: STREAMS.outreach, types: RUN_TYPES, from: start, to })) {
    if (events.length === limit || left-- === 0) return { events, next: event.position };
    if (!runIds(event).includes(run_id)) continue;
    events.push(event);
    if (ENDS.includes(event.type)) break;
  }
  return { events, next: undefined };
}

/**
 * Finds the position of a run's first event by its id, as {@link eventsOfRun} does; undefined if there is no such run.
 */
export async function findRunStart(reading: Reading, run_id: string): Promise<number | undefined> {
  const { store, to } = reading;
  const from = (await positionBefore(reading, parseIdTime(run_id) - CLOCK_MS)) + 1;
  return findOfRun(run_id, store.read({ types: ["RunStarted"], from, to, limit: STARTS_MAX }));
}

/**
 * Maximum number of ends of runs read to find that of one run. Runs do not overlap, so its end is among the first ones
 * after its start.
 */
const ENDS_MAX = 100;

/**
 * Finds the position of the event that ends a run, even if outcomes of its messages are recorded later; undefined while
 * it is in progress.
 */
export async function findRunEnd({ store, to }: Reading, run_id: string, start: number): Promise<number | undefined> {
  return findOfRun(run_id, store.read({ types: ENDS, from: start, to, limit: ENDS_MAX }));
}

async function findOfRun(run_id: string, events: AsyncIterable<Recorded>): Promise<number | undefined> {
  for await (const event of events) if (runIds(event).includes(run_id)) return event.position;
  return undefined;
}

export function isOfRun(run_id: string): (event: EventLike) => boolean {
  return (event) => runIds(event).includes(run_id);
}

const ENDS: readonly EventType[] = ["RunFinished", "RunAbandoned", "DryRunFinished"];

function runIds({ data }: EventLike): string[] {
  return "run_id" in data && data.run_id !== undefined ? [data.run_id] : [];
}

function attemptIds({ data }: EventLike): string[] {
  return "attempt_id" in data ? [data.attempt_id] : [];
}
