// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { openSqliteStore, type EventStore, type Query } from "eventstore-lite";
import { codec, makeEvent, type Event, type Recorded } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES, projectionOf } from "../../projections/all.ts";
import { fold } from "../../projections/projection.ts";
import { encodeState } from "../../projections/encode-state.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { foldLog } from "../harness/fold-log.ts";
import { writeMixedLog } from "../bench/write-mixed-log.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";

async function mixed(events: number): Promise<EventStore<Event>> {
  const file = newLogFile();
  await writeMixedLog(file, events);
  return openSqliteStore<Event>({ file, codec });
}

async function eventsOf(store: EventStore<Event>, query: Query = {}): Promise<Recorded[]> {
  return Array.fromAsync(store.read(query));
}

describe("a fold of the log up to a moment", () => {
  test("gives all projections in one pass the same states as event-by-event folds", async () => {
    await using store = await mixed(3_000);
    const { states, ...rest } = await foldLog(store, PROJECTION_NAMES);
    const { position, time } = await store.head();
    expect(rest).toEqual({ position, time, events: 3_000 });
    const events = await eventsOf(store);
    for (const name of PROJECTION_NAMES) {
      const one = fold(projectionOf(name), projectionOf(name).initial(), events);
      expect(encodeState(states[name])).toBe(encodeState(one));
    }
  });

  test("ends at a given position or at the last event before a given time", async () => {
    await using store = await mixed(3_000);
    const [middle] = await eventsOf(store, { from: 1_500, limit: 1 });
    const upTo = await foldLog(store, ["clicks", "stats"], { to: 1_500 });
    expect([upTo.position, upTo.time]).toEqual([1_500, middle?.time]);
    expect(Object.keys(upTo.states)).toEqual(["clicks", "stats"]);
    const before = fold(projectionOf("clicks"), projectionOf("clicks").initial(), await eventsOf(store, { to: 1_500 }));
    expect(encodeState(upTo.states.clicks)).toBe(encodeState(before));
    const until = new Date(middle?.time ?? 0);
    const last = (await eventsOf(store, { until })).at(-1)?.position ?? 0;
    const then = await foldLog(store, ["clicks"], { until });
    expect(then.position).toBe(last);
    expect(then.states).toEqual((await foldLog(store, ["clicks"], { to: last })).states);
  });

  test("gives the initial states for a moment before the first event", async () => {
    await using store = await mixed(100);
    for (const options of [{ until: new Date("2001-01-01") }, { to: 0 }]) {
      const { states, ...rest } = await foldLog(store, ["stats"], options);
      expect(rest).toEqual({ position: 0, time: undefined, events: 0 });
      expect(states.stats).toEqual(projectionOf("stats").initial() as typeof states.stats);
    }
  });

  test("reports its progress and reads only the types of its projections", async () => {
    await using store = await mixed(3_000);
    const told: number[] = [];
    const all = await foldLog(store, PROJECTION_NAMES, { onProgress: (position) => told.push(position) });
    expect(told.at(-1)).toBe(all.position);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(told.length).toBeGreaterThan(2);
    await store.append("outreach", [
      makeEvent("DirectMessageSkipped", makeId(), { run_id: "r", recipient: { id: "1" }, reason: "self" }, {}),
    ]);
    const { states, events, position } = await foldLog(store, ["stats"]);
    expect(events).toBe(states.stats.sent + states.stats.failed + states.stats.skipped);
    expect(position).toBe(3_001);
  });
});

test("a mixed log is reproducible from its seed", async () => {
  const told = async (seed: number): Promise<string[]> => {
    const file = newLogFile();
    await writeMixedLog(file, 1_200, { seed });
    await using store = await openSqliteStore<Event>({ file, codec });
    return (await eventsOf(store)).map(({ id, stream, version, type, data }) =>
      JSON.stringify([id, stream, version, type, data]),
    );
  };
  const first = await told(7);
  expect(first).toHaveLength(1_200);
  expect(await told(7)).toEqual(first);
  expect(await told(8)).not.toEqual(first);
});
