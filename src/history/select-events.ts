import type { EventStore } from "eventstore-lite";
import type { EventLike, EventType, Recorded, LogStore } from "../../events/event-types-and-codec.ts";
import type { Recipient } from "../../events/outreach.ts";
import { eventsAt } from "../log/event-log.ts";
import type { Show } from "../log/export-formats/write-export-text.ts";
import { inChunks } from "../platform/work-in-time-slices.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

interface Condition {
  readonly types: readonly EventType[] | undefined;
  /** Condition that an event must meet; absent if all events of these types are selected. */
  readonly isWanted?: ((event: EventLike) => boolean) | undefined;
}

interface Wanted extends Condition {
  readonly stream: string | undefined;
  /** Recipient that all selected events are about; absent if the filter names none. */
  readonly recipient?: Recipient;
}

export interface PositionRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Selection of events, in the order of the log: those in a range of positions, or those at some positions, that meet
 * the conditions.
 */
export type Selection = Wanted &
  (
    | { readonly kind: "range"; readonly range: PositionRange }
    | { readonly kind: "places"; readonly positions: readonly number[] }
  );

/** Maximum number of events tested for one page: in a long stream, only few may meet the conditions. */
const READ_MAX = 5_000;

/**
 * Maximum number of events at given positions, such as those about one recipient, that are read and tested for one
 * page. It is lower than {@link READ_MAX}, because these events are read with all their data.
 */
const PLACES_READ_MAX = 1_000;

/**
 * Reads a page of a selection by the log's indexes, newest first. It tests {@link READ_MAX} events at most, so even an
 * empty page may have a next one. `next`: position before which the next page lies; undefined on the last page.
 */
export async function readPage(
  store: LogStore,
  selection: Selection,
  { before = Infinity, limit }: { readonly before: number | undefined; readonly limit: number },
) {
  const looked =
    selection.kind === "places" ? lookAt(selection, before, limit) : await lookFor(store, selection, before, limit);
  const found: Recorded[] = [];
  for await (const event of eventsAt(store, looked.positions.toReversed()))
    if (isIn(selection, event)) found.push(event);
  const events = found.toReversed().slice(0, limit);
  return { events, next: found.length > limit ? events.at(-1)?.position : looked.end };
}

/**
 * Finds events that may be selected among known positions, newest first. `end`: where the search stopped, if earlier
 * positions were not looked at.
 */
function lookAt({ positions, types, stream, isWanted }: Places, before: number, limit: number) {
  const isFiltered = types !== undefined || stream !== undefined || isWanted !== undefined;
  const older = positions.filter((position) => position < before);
  const looked = older.slice(-(isFiltered ? PLACES_READ_MAX : limit + 1));
  const end = isFiltered && looked.length < older.length ? looked[0] : undefined;
  return { positions: looked.toReversed(), end };
}

type Places = Extract<Selection, { kind: "places" }>;
type Range = Extract<Selection, { kind: "range" }>;

/** Finds selected events in a range, newest first: up to one more than `limit`, which shows if there is a next page. */
async function lookFor(store: LogStore, { range, types, stream, isWanted }: Range, before: number, limit: number) {
  const positions: number[] = [];
  const to = Math.min(range.last, before - 1);
  // No index covers both a stream and types. If the log has few events of these types, reads them and picks those of
  // the stream; else reads the stream and picks those of these types.
  const few = stream === undefined || types === undefined ? undefined : await readIfFew(store, types, range.first, to);
  if (few !== undefined) return { positions: few, end: undefined };
  const query = stream === undefined ? (types === undefined ? {} : { types }) : { stream };
  const isFiltered = isWanted !== undefined || (stream !== undefined && types !== undefined);
  const most = isFiltered ? READ_MAX : limit + 1;
  let read = 0;
  for await (const batch of store.readFolded({ ...query, from: range.first, to, backwards: true, limit: most })) {
    for (const event of batch) {
      read++;
      if (isSelected({ types, isWanted }, event)) positions.push(event.position);
      if (positions.length > limit) return { positions, end: undefined };
      if (read === READ_MAX) return { positions, end: event.position };
    }
  }
  return { positions, end: undefined };
}

/**
 * Returns the positions of events of these types in an interval, newest first; undefined if there are too many to read
 * each event and compare it with the filter.
 */
async function readIfFew(store: LogStore, types: readonly EventType[], from: number, to: number) {
  const positions: number[] = [];
  const query = { types, from, to, backwards: true, limit: PLACES_READ_MAX + 1 };
  for await (const batch of store.readFolded(query)) positions.push(...batch.map(({ position }) => position));
  return positions.length > PLACES_READ_MAX ? undefined : positions;
}

/**
 * Reads the stored events of a selection and yields them in the form to which `show` converts them, in the order of the
 * log.
 */
export async function* storedEvents(store: EventStore, selection: Selection, show: Show) {
  for await (const stored of inChunks(readSelected(store, selection), SHOWN_AT_ONCE)) {
    for (const event of await show(stored)) if (isIn(selection, event as unknown as Recorded)) yield event;
  }
}

/** Number of events whose decryption keys are fetched together. */
const SHOWN_AT_ONCE = 512;

async function* readSelected(store: EventStore, selection: Selection) {
  if (selection.kind === "places") {
    for (const position of selection.positions) yield* store.readStored({ from: position, to: position });
    return;
  }
  const { range, types, stream } = selection;
  yield* store.readStored({ ...omitUndefined({ types, stream }), from: range.first, to: range.last });
}

function isIn(selection: Selection, event: Recorded): boolean {
  return (selection.stream === undefined || selection.stream === event.stream) && isSelected(selection, event);
}

function isSelected({ types, isWanted }: Condition, event: EventLike): boolean {
  return (types === undefined || types.includes(event.type)) && (isWanted === undefined || isWanted(event));
}
