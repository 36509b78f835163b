import type { Query } from "eventstore-lite";
import type { Recorded, LogStore } from "../../events/event-types-and-codec.ts";
import { eventAt } from "../log/event-log.ts";
import { ServiceError, usageError } from "../platform/service-error.ts";

/** Reading of the log for a history, up to and including position `to`. */
export interface Reading {
  readonly store: LogStore;
  readonly to: number;
  /** The search calls this now and then with the position that it has reached. */
  readonly onProgress: (position: number) => void;
}

/**
 * Returns the range of the log that a history page reads: from the start of the log up to the page's position, without
 * progress reports.
 */
export function toReading({ store, position }: { readonly store: LogStore; readonly position: number }): Reading {
  return { store, to: position, onProgress: () => {} };
}

/** Matches ids of events and runs: UUIDs of any version, because an imported log may have others than ours. */
export const EVENT_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Matches the position of an event, as every listing prints it. */
const POSITION = /^[1-9]\d{0,14}$/;

/** Pattern of a text that names an event by its id or position. */
export const EVENT_NAME = String.raw`^(?:[1-9]\d{0,14}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$`;

/** True if the text is the id or the position of an event. */
export function isEventName(text: string): boolean {
  return EVENT_ID.test(text) || POSITION.test(text);
}

/** Finds the event at a position; undefined if there is none up to the reading's end. */
export async function findAt({ store, to }: Reading, position: string): Promise<Recorded | undefined> {
  if (!POSITION.test(position) || Number(position) > to) return undefined;
  return eventAt(store, Number(position));
}

/**
 * Finds the event with this id or position, or the start of the run with this id. The search begins at the time that
 * the id holds (RFC 9562, UUIDv7); only an unknown id makes it read the whole log.
 */
export async function findEvent(reading: Reading, id: string): Promise<Recorded | undefined> {
  const { store, to } = reading;
  if (POSITION.test(id)) return findAt(reading, id);
  for await (const event of store.read({ types: ["RunStarted"], to })) {
    if (event.type === "RunStarted" && event.data.run_id === id) return event;
  }
  const before = await positionBefore(reading, parseIdTime(id));
  return (await search(reading, id, { from: before + 1, to })) ?? search(reading, id, { from: 1, to: before });
}

/** Finds the event with this id or position. Throws a ServiceError (usage, not_found). */
export async function requireEvent(store: LogStore, name: string): Promise<Recorded> {
  if (!isEventName(name)) throw usageError("give the id or the position of an event");
  const { position: to } = await store.head();
  const found = await findEvent({ store, to, onProgress() {} }, name.toLowerCase());
  if (found !== undefined) return found;
  throw new ServiceError("not_found", `the log has no event ${name}: it ends at position ${to}`);
}

/**
 * Maximum number of events read to find one by its id. The search starts at the time in the id, and other events may be
 * recorded between that time and the wanted event.
 */
const NEAR_MAX = 2_000;

/**
 * Finds the event with an id, searching from the time that the id contains. If it is not found there, searches again
 * from `aheadMs` earlier, because the clock that made the id may have been ahead of the log's by that much.
 */
export async function findEventNear(reading: Reading, id: string, aheadMs = 0): Promise<Recorded | undefined> {
  for (const earlierMs of new Set([0, aheadMs])) {
    const from = (await positionBefore(reading, parseIdTime(id) - earlierMs)) + 1;
    const event = await search(reading, id, { from, to: reading.to, limit: NEAR_MAX });
    if (event !== undefined) return event;
  }
  return undefined;
}

async function search({ store, onProgress }: Reading, id: string, query: Query) {
  for await (const event of store.read(query)) {
    if (event.id === id) return event;
    onProgress(event.position);
  }
  return undefined;
}

/**
 * Returns the last position recorded before a moment; 0 if there is none. An id states when it was made, and its event
 * is recorded only later, so a search for the event begins after this position.
 */
export async function positionBefore({ store, to }: Reading, ms: number): Promise<number> {
  for await (const { position } of store.read({ until: new Date(ms - 1), to, backwards: true, limit: 1 }))
    return position;
  return 0;
}

const TIME_DIGITS = 12;

/**
 * Returns the first 48 bits of an id. In a UUIDv7 they are the time when it was made, in ms since 1970. In any other id
 * they are random, so that a search begins at a random time.
 */
export function parseIdTime(id: string): number {
  return Number.parseInt(id.replaceAll("-", "").slice(0, TIME_DIGITS), 16);
}
