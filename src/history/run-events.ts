import type { EventType, Folded, LogStore, Recorded } from "../../events/catalog.ts";
import type { States } from "../../projections/all.ts";
import type { RunOutcome, RunSummary } from "../../projections/runs.ts";
import { eventsAt, STREAMS } from "../log/event-log.ts";
import { parseIdTime, positionBefore, type Reading } from "./find-event.ts";

/** How a run went on: of interest to who asks for the run, and not to who asks for one of its recipients. */
const COURSE_TYPES: readonly EventType[] = ["RunPaused", "InboxRead", "SourceRead"];

/** All that a run appends about itself and about recipients. */
const RUN_TYPES: readonly EventType[] = [
  ...COURSE_TYPES,
  "RunStarted",
  "RunStopRequested",
  "DirectMessageAttempted",
  "DirectMessageSent",
  "DirectMessageSkipped",
  "DirectMessageFailed",
  "DirectMessageInDoubt",
  "RecipientRetryAllowed",
  "RunFinished",
  "RunAbandoned",
  "DryRunFinished",
];

/** What can be asked of an event by all ways of reading it. */
export type EventLike = Pick<Folded, "type" | "data">;

/** Whether it is about one recipient in a run, rather than of the run. */
export function isOfOneRecipient({ data }: EventLike): boolean {
  return "run_id" in data && "recipient" in data;
}

/** The events of the runs that `roots` are about: their starts and ends, and all messages or only those among the roots. */
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

/** Events read at the most to find those of one run: while it goes on, hardly any others have these types. */
const READ_MAX = 5_000;

/** Processes of one machine, and the store, may tell the time a little differently. */
const CLOCK_MS = 60_000;

/** Runs that may have begun in that time. */
const STARTS_MAX = 1_000;

/**
 * The events of a run with a UUIDv7 as its id, the oldest first. The id says when the run began, so no other time is
 * read. `from`: a position; undefined: the run's start. `next`: the position to go on at; undefined: these were the last.
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

/** Position of the run's first event, found by its id as {@link eventsOfRun} does; undefined: there is no such run. */
export async function findRunStart(reading: Reading, run_id: string): Promise<number | undefined> {
  const { store, to } = reading;
  const from = (await positionBefore(reading, parseIdTime(run_id) - CLOCK_MS)) + 1;
  return findOfRun(run_id, store.read({ types: ["RunStarted"], from, to, limit: STARTS_MAX }));
}

/** Ends of runs looked at for that of one: another one begins only after it. */
const ENDS_MAX = 100;

/** Position of the run's last event but for what is found out later; undefined: it goes on. */
export async function findRunEnd({ store, to }: Reading, run_id: string, start: number): Promise<number | undefined> {
  return findOfRun(run_id, store.read({ types: ENDS, from: start, to, limit: ENDS_MAX }));
}

/** Returns who started each run, by its id. `positions` are those of the events that started them, in any order. */
export async function findRunCallers(
  store: LogStore,
  positions: readonly number[],
): Promise<ReadonlyMap<string, string | undefined>> {
  const callers = new Map<string, string | undefined>();
  for await (const { data, meta } of eventsAt(
    store,
    positions.toSorted((one, other) => one - other),
  )) {
    if ("run_id" in data && data.run_id !== undefined) callers.set(data.run_id, meta.caller);
  }
  return callers;
}

/** Returns the figures of a run; while it is in progress, those so far. */
export function readRunCounts(
  { current }: States["run"],
  runId: string,
  { end }: RunSummary,
): Omit<RunOutcome, "reason"> {
  const { sent, skipped, failed } = end ?? (current?.run_id === runId ? current : { sent: 0, skipped: 0, failed: 0 });
  return { sent, skipped, failed };
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
