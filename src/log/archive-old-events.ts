import type { ArchivedSegment } from "eventstore-lite/segments";
import type { DataOf, LogStore } from "../../events/event-types-and-codec.ts";
import { DAY_MS, HOUR_MS } from "../../projections/parse-log-times.ts";
import { makeId, sleep } from "../platform/clock-ids-and-timers.ts";
import { errorFields } from "../platform/logger.ts";
import { classifyError } from "./classify-store-error.ts";
import {
  createEventLog,
  type EventLog,
  type EventMetadata,
  SERVICE_METADATA,
  STREAMS,
  type LogContext,
} from "./event-log.ts";
import { workUntilDisposed } from "../platform/signals.ts";
import type { WorkMonitor } from "./progress-and-cancellation.ts";
import { parseMoment, startOfDay } from "../projector/parse-moment.ts";

/** Interval in ms at which the service looks for events that are old enough for the archive. */
const LOOK_MS = HOUR_MS;

/**
 * Pause between two archived segments, in ms. A segment keeps the writer busy for some ten milliseconds, so with this
 * pause archiving takes about a hundredth of the writer's time.
 */
const PAUSE_MS = 1_000;

/** Archives events in segments, and then appends an event that says how much was archived, if anything was. */
export async function archiveEvents(
  { store, append }: EventLog,
  metadata: EventMetadata,
  { to, fullOnly = false }: { readonly to: number; readonly fullOnly?: boolean },
  onArchived: (segment: ArchivedSegment) => Promise<boolean>,
): Promise<DataOf<"EventsArchived"> | undefined> {
  let archived: DataOf<"EventsArchived"> | undefined;
  for await (const segment of store.archive({ to, fullOnly })) {
    const { events = 0, segments = 0, bytes = 0 } = archived ?? {};
    archived = {
      position: segment.last,
      events: events + segment.last - segment.first + 1,
      segments: segments + 1,
      bytes: bytes + segment.bytes,
    };
    if (!(await onArchived(segment))) break;
  }
  if (archived !== undefined) await append(STREAMS.log, [{ type: "EventsArchived", data: archived }], metadata);
  return archived;
}

/**
 * Archives all events before a moment, until it is interrupted, and closes the store. `before`: a day, of which the
 * beginning in the time zone counts, a time, or a position. Throws a ServiceError (usage) for any other text.
 */
export async function archiveBefore(
  opened: LogStore,
  { before, timezone }: { readonly before: string; readonly timezone: string },
  metadata: EventMetadata,
  { showProgress, isInterrupted }: WorkMonitor,
): Promise<DataOf<"EventsArchived">> {
  await using store = opened;
  const day = startOfDay(before, timezone);
  const { to, until } = day === undefined ? parseMoment(before, timezone) : { to: undefined, until: day };
  const end = until === undefined ? Math.max(0, (to ?? 0) - 1) : await lastBefore(store, until.getTime());
  const { last: start = 0 } = (await store.archived()).at(-1) ?? {};
  const { append } = createEventLog(store, makeId);
  const archived = await showProgress("archiving", Math.max(0, end - start), (onProgress) =>
    archiveEvents({ store, append }, metadata, { to: end }, async ({ last }) => {
      onProgress(last - start);
      return !isInterrupted();
    }),
  );
  return archived ?? { position: start, events: 0, segments: 0, bytes: 0 };
}

/** Position of the last event recorded before a time, in ms since 1970; 0 if there is none. */
export async function lastBefore(store: LogStore, timeMs: number): Promise<number> {
  for await (const { position } of store.readStored({ until: new Date(timeMs - 1), backwards: true, limit: 1 }))
    return position;
  return 0;
}

/**
 * Starts the service's archiving: events older than `days` are archived at once and then every hour, a segment at a
 * time.
 */
export function startArchiver({ eventLog, clock, logger }: LogContext, days: number): AsyncDisposable {
  return workUntilDisposed(async (signal) => {
    /** Waits for `ms`. Resolves with false if the service is stopping. */
    const pause = async (ms: number): Promise<boolean> => {
      await sleep(ms, signal);
      return !signal.aborted;
    };
    const look = async (): Promise<void> => {
      const to = await lastBefore(eventLog.store, clock() - days * DAY_MS);
      const options = { to, fullOnly: true };
      const archived = await archiveEvents(eventLog, SERVICE_METADATA, options, () => pause(PAUSE_MS));
      if (archived !== undefined) logger.info("events were archived", { ...archived });
    };
    do {
      await look().catch((fault: unknown) => {
        if (classifyError(fault) !== "closed") logger.error("events were not archived", errorFields(fault));
      });
    } while (await pause(LOOK_MS));
  });
}
