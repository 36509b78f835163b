import type { Query } from "eventstore-lite";
import type { Recorded, LogStore } from "../../events/catalog.ts";
import { eventAt } from "../log/event-log.ts";
import { ServiceError, usageError } from "../platform/service-error.ts";

/** Where a history is read from, up to and including a position. */
export interface Reading {
  readonly store: LogStore;
  readonly to: number;
  /** Told which position is read. */
  readonly onProgress: (position: number) => void;
}

/** Event and run ids are UUIDs, of whatever version an imported log has. */
export const EVENT_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A position as every listing prints it. */
const POSITION = /^[1-9]\d{0,14}$/;

/** A pattern: how an event is named, by its id or its position. */
export const EVENT_NAME = String.raw`^(?:[1-9]\d{0,14}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$`;

/** True if the text is the id or the position of an event. */
export function isEventName(text: string): boolean {
  return EVENT_ID.test(text) || POSITION.test(text);
}

/** The event at this position, if it is one of the log. */
export async function findAt({ store, to }: Reading, position: string): Promise<Recorded | undefined> {
  if (!POSITION.test(position) || Number(position) > to) return undefined;
  return eventAt(store, Number(position));
}

/**
 * The event with this id or at this position, or the start of the run with this id. Ids of events hold the time at which they were made
 * (RFC 9562, UUIDv7), so the search starts there; only an id that is not in the log costs a reading of all of it.
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

/** The event of this name. Throws a ServiceError (usage, not_found). */
export async function requireEvent(store: LogStore, name: string): Promise<Recorded> {
  if (!isEventName(name)) throw usageError("give the id or the position of an event");
  const { position: to } = await store.head();
  const found = await findEvent({ store, to, onProgress() {} }, name.toLowerCase());
  if (found !== undefined) return found;
  throw new ServiceError("not_found", `the log has no event ${name}: it ends at position ${to}`);
}

/** Events read for one id at the most: between making an id and recording its event others may come. */
const NEAR_MAX = 2_000;

/** The event with this id where the id says when it was made, as all do that this service makes; no other time is read. */
export async function findEventNear(reading: Reading, id: string): Promise<Recorded | undefined> {
  const from = (await positionBefore(reading, parseIdTime(id))) + 1;
  return search(reading, id, { from, to: reading.to, limit: NEAR_MAX });
}

async function search({ store, onProgress }: Reading, id: string, query: Pick<Query, "from" | "to" | "limit">) {
  for await (const event of store.read(query)) {
    if (event.id === id) return event;
    onProgress(event.position);
  }
  return undefined;
}

/** The last position recorded before this moment. An event is recorded after its id was made. */
export async function positionBefore({ store, to }: Reading, ms: number): Promise<number> {
  for await (const { position } of store.read({ until: new Date(ms - 1), to, backwards: true, limit: 1 }))
    return position;
  return 0;
}

const TIME_DIGITS = 12;

/** The first 48 bits of a UUIDv7 are ms since 1970. Another id gives any moment, from which all is searched. */
export function parseIdTime(id: string): number {
  return Number.parseInt(id.replaceAll("-", "").slice(0, TIME_DIGITS), 16);
}
