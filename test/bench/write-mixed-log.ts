import { createHash } from "node:crypto";
import { type IdempotencyKey, openSqliteStore } from "eventstore-lite";
import { codec, makeEvent, type Event } from "../../events/event-types-and-codec.ts";
import { DAY_MS, HOUR_MS } from "../../projections/parse-log-times.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { createRandom } from "../harness/random.ts";
import { campaignsPart } from "./generate-campaign-events.ts";
import { clicksPart } from "./generate-clicks-and-dispatch-outcomes.ts";
import { outreachPart } from "./generate-outreach-events.ts";
import { restPart } from "./generate-notifications-and-refreshes.ts";

/** Number of events that are passed to the store before the program waits for their appends. */
const BATCH_EVENTS = 1_000;

/**
 * Number of days that the log covers: the 90 days that a chart shows, and the 90 before them. The service keeps counts
 * by quarter of an hour for these days. All events of a day are in its busy part.
 */
const DAYS = 180;
const BUSY_MS = 5 * HOUR_MS;

/** Time in the first event's id, a UUIDv7. The exact value does not matter. */
const FIRST_ID_MS = Date.parse("2026-11-20T00:00:00Z");

/** Appends events and returns the position of the first one. */
export type Emit = (stream: string, newEvents: readonly NewEvent[]) => number;

/** Writes the events of one kind for one round. All parts together write about fifty events in a round. */
export type Part = (emit: Emit, random: Random) => void;

/** Returns the next random number in [0, 1). */
export type Random = () => number;

export interface MixedLogOptions {
  /** Seed of the random numbers. The same seed gives the same events, except for their times. */
  readonly seed?: number;
  /** Number of recipients that the log imports first. Runs contact the first of them. */
  readonly people?: number;
  /** If given, every `keyEach`th click has an idempotency key; by default, no click has one. */
  readonly keyEach?: number;
  /** True to spread the events over the last half year; by default, all have the current time. */
  readonly isSpread?: boolean;
  /** Number of campaigns beside `default`; by default, the log has none. */
  readonly campaigns?: number;
  readonly onProgress?: (events: number) => void;
}

/**
 * Appends `events` events like those of a busy year: mostly clicks with three dispatches each, some retries and dead
 * letters, a few runs, imports and token refreshes. Recipients and links are limited.
 */
export async function writeMixedLog(file: string, events: number, options: MixedLogOptions = {}): Promise<void> {
  const { seed = 1, people = 0, keyEach, isSpread = false, campaigns = 0, onProgress } = options;
  const end = { position: 0 };
  const startMs = Date.now() - (DAYS - 1) * DAY_MS - BUSY_MS;
  const clock = isSpread ? () => startMs + busyTime((DAYS * end.position) / (events + 1)) : Date.now;
  await using store = await openSqliteStore<Event>({ file, codec, clock });
  if ((await store.head()).position > 0) throw new Error(`${file} is not empty`);
  const random = createRandom(seed);
  const parts = [clicksPart(), outreachPart(people, campaigns > 0), restPart(), campaignsPart(campaigns)];
  let batch: Promise<unknown>[] = [];
  let clicks = 0;

  const emit: Emit = (stream, newEvents) => {
    const first = end.position + 1;
    const made = newEvents.slice(0, events - end.position).map(({ type, data }) => {
      end.position++;
      return makeEvent(type, idOf(end.position, random), data, { caller: "mixed-log" });
    });
    const isKeyed = keyEach !== undefined && newEvents[0]?.type === "LinkClicked";
    for (const [index, one] of (isKeyed ? made.map((event) => [event]) : [made]).entries()) {
      if (one.length === 0) continue;
      const key = isKeyed && (clicks += 1) % keyEach === 0 ? keyOf(one[0]!.id) : undefined;
      batch.push(store.append(stream, one, key).then((appended) => expectPosition(appended.first, first + index)));
    }
    return first;
  };

  let written = 0;
  while (end.position < events) {
    for (const part of parts) part(emit, random);
    if (end.position - written < BATCH_EVENTS && end.position < events) continue;
    await Promise.all(batch);
    batch = [];
    written = end.position;
    onProgress?.(written);
  }
}

/**
 * Converts a number of days since the first day to ms since its beginning. All results of a day are within its busy
 * part.
 */
function busyTime(days: number): number {
  const day = Math.floor(days);
  return day * DAY_MS + Math.floor((days - day) * BUSY_MS);
}

/**
 * Throws unless the store gave the event the predicted position, because outcomes of dispatches contain predicted
 * positions.
 */
function expectPosition(actual: number, foreseen: number): void {
  if (actual !== foreseen) throw new Error(`an event came to position ${actual} instead of ${foreseen}`);
}

/** Creates an idempotency key and digest as long as those of an API request. */
function keyOf(id: string): IdempotencyKey {
  const hash = (text: string) => createHash("sha256").update(text).digest("hex");
  return { key: `request/${hash(id)}`, digest: hash(`body of ${id}`) };
}

/** A unique UUIDv7 for each position. */
function idOf(position: number, random: Random): string {
  const time = (FIRST_ID_MS + position).toString(16).padStart(12, "0");
  const hex = (digits: number) =>
    Math.floor(random() * 16 ** digits)
      .toString(16)
      .padStart(digits, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(3)}-8${hex(3)}-${hex(12)}`;
}

if (import.meta.main) {
  const [file, events, people = "0", spread, keyEach = "0", campaigns = "0"] = process.argv.slice(2);
  if (file === undefined || !(Number(events) > 0)) {
    console.error("usage: write-mixed-log.ts FILE EVENTS [PEOPLE [spread|now [KEY_EACH [CAMPAIGNS]]]]");
    process.exit(2);
  }
  await writeMixedLog(file, Number(events), {
    people: Number(people),
    ...(Number(keyEach) > 0 && { keyEach: Number(keyEach) }),
    isSpread: spread === "spread",
    campaigns: Number(campaigns),
    onProgress: (done) => process.stderr.write(`\r${done} `),
  });
}
