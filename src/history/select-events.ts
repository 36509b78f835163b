import type { EventStore } from "eventstore-lite";
import type { EventType, Recorded, LogStore } from "../../events/catalog.ts";
import type { Recipient } from "../../events/outreach.ts";
import { eventsAt } from "../log/event-log.ts";
import type { Show } from "../log/export-formats/format.ts";
import type { EventLike } from "./run-events.ts";
import { inChunks } from "../platform/time-slices.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

interface Wanted {
  readonly types: readonly EventType[] | undefined;
  readonly stream: string | undefined;
  /** Absent: all of these types and of this stream. */
  readonly isWanted?: ((event: EventLike) => boolean) | undefined;
  /** The one recipient that they are about; absent: no single one. */
  readonly recipient?: Recipient;
}

export interface PositionRange {
  readonly first: number;
  readonly last: number;
}

/** Events of the log: those within a range that are wanted, or those at some positions, in their order. */
export type Selection = Wanted &
  (
    | { readonly kind: "range"; readonly range: PositionRange }
    | { readonly kind: "places"; readonly positions: readonly number[] }
  );

/** Events looked at for one page at the most: of a long stream only few may be wanted. */
const READ_MAX = 5_000;

/** The same of those at known positions, which are read whole. */
const PLACES_READ_MAX = 1_000;

/**
 * Some events of a selection, the newest first, found by the log's indexes. Where few of a stream's are wanted, a page may
 * have fewer than `limit`, and none at all, and go on all the same: it looks at {@link READ_MAX} at the most. `next`: the
 * next page has events before this position; undefined: there are none.
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

/** Where events may be that are wanted, the newest first; `end`: how far back was looked, where there is more behind it. */
function lookAt({ positions, types, stream, isWanted }: Places, before: number, limit: number) {
  const isFiltered = types !== undefined || stream !== undefined || isWanted !== undefined;
  const older = positions.filter((position) => position < before);
  const looked = older.slice(-(isFiltered ? PLACES_READ_MAX : limit + 1));
  const end = isFiltered && looked.length < older.length ? looked[0] : undefined;
  return { positions: looked.toReversed(), end };
}

type Places = Extract<Selection, { kind: "places" }>;
type Range = Extract<Selection, { kind: "range" }>;

/** The same of a range: one more than `limit` of those that are wanted. */
async function lookFor(store: LogStore, { range, types, stream, isWanted }: Range, before: number, limit: number) {
  const positions: number[] = [];
  const to = Math.min(range.last, before - 1);
  // An index finds the events of a stream, or those of types, and none finds both: where few are of the types, these are
  // looked at, else those of the stream.
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

/** All events of these types, the newest first; undefined: there are more than are looked at. */
async function readIfFew(store: LogStore, types: readonly EventType[], from: number, to: number) {
  const positions: number[] = [];
  const query = { types, from, to, backwards: true, limit: PLACES_READ_MAX + 1 };
  for await (const batch of store.readFolded(query)) positions.push(...batch.map(({ position }) => position));
  return positions.length > PLACES_READ_MAX ? undefined : positions;
}

/** All events of a selection as they are stored and as `show` shows them, in the order of the log. */
export async function* storedEvents(store: Pick<EventStore, "readStored">, selection: Selection, show: Show) {
  for await (const stored of inChunks(readSelected(store, selection), SHOWN_AT_ONCE)) {
    for (const event of await show(stored)) if (isIn(selection, event as unknown as Recorded)) yield event;
  }
}

/** Events whose keys are fetched together. */
const SHOWN_AT_ONCE = 512;

async function* readSelected(store: Pick<EventStore, "readStored">, selection: Selection) {
  if (selection.kind === "places") {
    for (const position of selection.positions) yield* store.readStored({ from: position, to: position });
    return;
  }
  const { range, types, stream } = selection;
  yield* store.readStored({ ...omitUndefined({ types, stream }), from: range.first, to: range.last });
}

function isIn(selection: Selection, event: Pick<Recorded, "type" | "data" | "stream">): boolean {
  return (selection.stream === undefined || selection.stream === event.stream) && isSelected(selection, event);
}

function isSelected({ types, isWanted }: Pick<Wanted, "types" | "isWanted">, event: EventLike): boolean {
  return (types === undefined || types.includes(event.type)) && (isWanted === undefined || isWanted(event));
}
