import { expect } from "bun:test";
import { type EventStore, type NewEvent, openSqliteStore, type Recorded } from "eventstore-lite";
import { take } from "../src/testing/contract/make-events-and-collect-results.ts";
import type { Ledger } from "./record-answers-to-appends.ts";
import { eventsOf, streamOf } from "./programs/keyed-events-and-append-loop.ts";

/** The differences between a log and what its callers were told. */
export interface Findings {
  readonly acknowledged: number;
  /** Acknowledged appends that are missing in the log, or not where they were acknowledged. */
  readonly lost: readonly string[];
  /** Appends that are in the log more than once. */
  readonly doubled: readonly string[];
  /** Appends that are in the log in part. */
  readonly torn: readonly string[];
  /** Appends in the log that no caller asked for. */
  readonly foreign: readonly string[];
}

export const FAULTLESS = { lost: [], doubled: [], torn: [], foreign: [] };

/**
 * Opens a log after a fault and compares it with the ledger, which holds what the log's callers were told. Throws if
 * the log itself is not whole.
 */
export async function examine(file: string, ledger: Ledger): Promise<Findings> {
  await using store = await openSqliteStore({ file, owner: true });
  const events = await take(store.read());
  await expectWhole(store, events);
  const places = placesByKey(events);
  const found = [...places.keys()];
  const copies = (key: string) => places.get(key)!.length / eventsOf(key).length;
  return {
    acknowledged: ledger.acknowledged.size,
    lost: [...ledger.acknowledged].filter(([key, { first }]) => places.get(key)?.[0] !== first).map(([key]) => key),
    doubled: found.filter((key) => copies(key) > 1),
    torn: found.filter((key) => copies(key) < 1 || !isConsecutive(places.get(key)!)),
    foreign: found.filter((key) => !ledger.asked.has(key)),
  };
}

/** Repeats each append that was not acknowledged, under its idempotency key. */
export async function retry(file: string, ledger: Ledger): Promise<void> {
  await using store = await openSqliteStore({ file, owner: true });
  for (const key of ledger.unacknowledged()) {
    const { first, last } = await store.append(streamOf(key), eventsOf(key), { key });
    ledger.take(`+ ${key} ${first} ${last}`);
  }
}

/**
 * Expects that a log's hash chain holds, that no event is missing, and that each way to read the log finds the same
 * events.
 */
export async function expectWhole(store: EventStore, events: readonly Recorded<NewEvent>[]): Promise<void> {
  expect(await store.verify()).toMatchObject({ ok: true, checked: events.length });
  expect((await store.head()).position).toBe(events.length);
  expect(events.every(({ position }, index) => position === index + 1)).toBe(true);
  const byStream = Map.groupBy(events, ({ stream }) => stream);
  for (const [stream, own] of byStream) {
    expect(own.every(({ version }, index) => version === index + 1)).toBe(true);
    expect(await positions(store.read({ stream }))).toEqual(own.map(({ position }) => position));
  }
  for (const [type, own] of Map.groupBy(events, ({ type }) => type)) {
    expect(await positions(store.read({ types: [type] }))).toEqual(own.map(({ position }) => position));
  }
}

async function positions(events: AsyncIterable<Recorded<NewEvent>>): Promise<number[]> {
  return (await take(events)).map(({ position }) => position);
}

/**
 * Returns, for each idempotency key, the positions in the log of the events that were appended with it, in ascending
 * order.
 */
function placesByKey(events: readonly Recorded<NewEvent>[]): Map<string, number[]> {
  const places = new Map<string, number[]>();
  for (const { data, position } of events) {
    const { key } = data as { key: string };
    const own = places.get(key);
    if (own) own.push(position);
    else places.set(key, [position]);
  }
  return places;
}

function isConsecutive(positions: readonly number[]): boolean {
  return positions.every((position, index) => position === positions[0]! + index);
}
