import type { LogStore } from "../../events/event-types-and-codec.ts";
import { escapeControls } from "../platform/escape-control-characters.ts";
import { usageError } from "../platform/service-error.ts";

/** A moment of the log: after the event at a position, or at a time; now if neither is given. */
export interface Moment {
  readonly to?: number;
  readonly until?: Date;
}

export interface Place {
  /** Position of the last event before a place in the log; 0 before the first event. */
  readonly position: number;
  readonly time: string | undefined;
}

const DAY = /^\d{4}-\d\d-\d\d$/;
const LOCAL_TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?$/i;
const INSTANT = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d)?)$/i;

/** Matches a date whose first and second number may both be the month. */
const TWO_DAYS = /^(0?[1-9]|1[0-2])\/(0?[1-9]|1[0-2])\/\d{4}\b/;

/**
 * Parses a moment, as in `--as-of` and `as_of`. Throws a ServiceError (usage) if the text is no moment, or could be
 * two.
 */
export function parseMoment(text: string | undefined, timezone: string): Moment {
  if (text === undefined) return {};
  if (/^\d+$/.test(text)) return { to: Number(text) };
  try {
    if (DAY.test(text)) return { until: endOfDay(text, timezone) };
    if (INSTANT.test(text)) return { until: new Date(Temporal.Instant.from(text).epochMilliseconds) };
  } catch (fault) {
    if (fault instanceof RangeError) throw usageError(`there is no such time as ${text}`);
    throw fault;
  }
  if (LOCAL_TIME.test(text)) return { until: localTime(text, timezone) };
  const shown = escapeControls(text.slice(0, 40));
  const [, one, other] = TWO_DAYS.exec(text) ?? [];
  if (one !== other)
    throw usageError(`which day is "${shown}"? Write the month as a word, or the date as in 2026-11-21`);
  throw usageError(`a moment is a position, a day or an ISO 8601 time, not "${shown}"`);
}

/** Returns the beginning of a day; undefined if the text is no day. */
export function startOfDay(text: string, timezone: string): Date | undefined {
  if (!DAY.test(text)) return undefined;
  const { to, until } = parseMoment(text, timezone);
  if (to !== undefined || until === undefined) return undefined;
  return new Date(Temporal.PlainDate.from(text).toZonedDateTime(timezone).epochMilliseconds);
}

/** Returns the last millisecond of a day: what users mean by "as of that day". */
function endOfDay(text: string, timezone: string): Date {
  const next = Temporal.PlainDate.from(text).add({ days: 1 }).toZonedDateTime(timezone);
  return new Date(next.epochMilliseconds - 1);
}

function localTime(text: string, timezone: string): Date {
  let local: Temporal.PlainDateTime;
  try {
    local = Temporal.PlainDateTime.from(text);
  } catch {
    throw usageError(`there is no such time as ${text}`);
  }
  try {
    return new Date(local.toZonedDateTime(timezone, { disambiguation: "reject" }).epochMilliseconds);
  } catch {
    throw usageError(
      `clocks in ${timezone} change at ${text}, so that it occurs twice or never: add an offset, such as +02:00`,
    );
  }
}

/** Refuses a position that the log does not have yet. Otherwise a typing error would look like the present. */
export async function checkMoment(store: LogStore, { to }: Moment): Promise<void> {
  if (to === undefined) return;
  const { position } = await store.head();
  if (to <= position) return;
  throw usageError(`the log ends at position ${position}: it has no position ${to} (a day is written 2026-11-21)`);
}

/**
 * Finds the log's last position at a moment, and its time. Throws a ServiceError (usage) for a position that the log
 * does not have yet.
 */
export async function findPlace(store: LogStore, moment: Moment): Promise<Place> {
  await checkMoment(store, moment);
  for await (const { position, time } of store.read({ ...moment, backwards: true, limit: 1 }))
    return { position, time };
  return { position: 0, time: undefined };
}
