import type fastCheck from "fast-check";
import type { EventStore, Folded, NewEvent, Query, Recorded } from "../../event-store-interface.ts";
import { newEvent, newEvents, take } from "./make-events-and-collect-results.ts";
import type { Runner } from "./test-runner-interface.ts";

/** More events than any store reads at once, so that a read has several parts. */
const LONG_LOG_EVENTS = 1_500;
const TICK_MS = 1_000;

const query = (fc: typeof fastCheck): fastCheck.Arbitrary<Query> =>
  fc.record(
    {
      stream: fc.constantFrom("a", "b", "never"),
      types: fc.subarray(["T0", "T1", "T2", "Unknown"]),
      alongLog: fc.boolean(),
      from: fc.integer({ min: 0, max: LONG_LOG_EVENTS + 5 }),
      to: fc.integer({ min: 0, max: LONG_LOG_EVENTS + 5 }),
      until: fc.integer({ min: -1, max: 20 }).map((tick) => new Date(tick * TICK_MS)),
      backwards: fc.boolean(),
      limit: fc.oneof(fc.nat({ max: 10 }), fc.nat({ max: LONG_LOG_EVENTS })),
    },
    { requiredKeys: [] },
  );

function workFor(ms: number): void {
  const endsAt = performance.now() + ms;
  while (performance.now() < endsAt);
}

/** Returns the events that a store must give for `query`, found by scanning all events of the log. */
function select(log: readonly Recorded<NewEvent>[], { stream, types, from, to, until, backwards, limit }: Query) {
  const matching = log.filter(
    (event) =>
      (stream === undefined || event.stream === stream) &&
      (types === undefined || types.includes(event.type)) &&
      event.position >= (from ?? 1) &&
      event.position <= (to ?? Infinity) &&
      Date.parse(event.time) <= (until?.getTime() ?? Infinity),
  );
  return (backwards ? matching.toReversed() : matching).slice(0, limit);
}

function essence({ position, version, type, time, data }: Folded<NewEvent>): Folded<NewEvent> {
  return { position, version, type, time, data };
}

export function readContract({ afterAll, beforeAll, describe, expect, fc, open, test }: Runner): void {
  describe("read", () => {
    let store: EventStore;
    let log: Recorded<NewEvent>[];

    beforeAll(async () => {
      let now = 0;
      store = await open({ clock: () => now });
      // Fifteen bursts at different times; streams and types are spread unevenly.
      for (let start = 0; start < LONG_LOG_EVENTS; start += 100) {
        now += TICK_MS;
        const appends = Array.from({ length: 100 }, (_, index) =>
          store.append(index % 5 === 0 ? "a" : "b", [
            newEvent(`T${(start + index) % 7 === 0 ? 0 : 1 + (index % 2)}`, index),
          ]),
        );
        await Promise.all(appends);
      }
      log = await take(store.read());
    });

    afterAll(() => store[Symbol.asyncDispose]());

    test("gives the whole log in order of position", () => {
      expect(log.map((event) => event.position)).toEqual(
        Array.from({ length: LONG_LOG_EVENTS }, (_, index) => index + 1),
      );
    });

    test("gives the same events for any query as a full scan", async () => {
      const found = fc.asyncProperty(query(fc), async (query) => {
        expect(await take(store.read(query))).toEqual(select(log, query));
      });
      await fc.assert(found, { numRuns: 80 });
    });

    test("gives a fold the same events in non-empty batches", async () => {
      const found = fc.asyncProperty(query(fc), async (query) => {
        const batches = await take(store.readFolded(query));
        expect(batches.every((batch) => batch.length > 0)).toBe(true);
        expect(batches.flat().map(essence)).toEqual(select(log, query).map(essence));
      });
      await fc.assert(found, { numRuns: 80 });
    });

    test("continues each part of a long read where the previous one ended", async () => {
      for (const backwards of [false, true]) {
        // The store reads a long log in several batches. Reads that start at different positions get batches that end
        // at different events.
        for (let from = 1; from <= 10; from += 1) {
          for (const query of [
            { from, backwards },
            { types: ["T1", "T2"], from, backwards },
            { types: ["T1", "T2"], alongLog: true, from, backwards },
            { stream: "b", from, backwards },
          ]) {
            expect(await take(store.read(query))).toEqual(select(log, query));
          }
        }
      }
    });

    test("lets other work run while its reader works", async () => {
      let hadTurn = false;
      setImmediate(() => (hadTurn = true));
      for await (const { position } of store.read()) if (position % 100 === 0) workFor(1);
      expect(hadTurn).toBe(true);
    });
  });

  describe("a read", () => {
    test("gives nothing from an empty log", async () => {
      await using store = await open();
      expect(await take(store.read())).toEqual([]);
    });

    test("leaves out events appended while it runs", async () => {
      await using store = await open();
      await store.append("a", newEvents(3));
      const seen: number[] = [];
      for await (const event of store.read()) {
        await store.append("a", [newEvent()]);
        seen.push(event.position);
      }
      expect(seen).toEqual([1, 2, 3]);
    });
  });
}

export function storedContract({ describe, expect, open, test }: Runner): void {
  describe("stored events", () => {
    test("equal those of a read if the codec leaves events unchanged", async () => {
      await using store = await open();
      await store.append("a", [newEvent("T1", { n: 1 }), newEvent("T2", null)]);
      await store.append("b", [newEvent("T1", "é")]);
      for (const query of [{}, { stream: "a" }, { types: ["T1"], backwards: true }, { from: 2, limit: 1 }]) {
        expect(await take(store.readStored(query))).toStrictEqual(await take(store.read(query)));
      }
      expect(await take(store.readStored())).toHaveLength(3);
    });
  });
}
