import type { EventStore } from "../../event-store-interface.ts";
import { newEvent, newEvents, take } from "./make-events-and-collect-results.ts";
import type { Runner } from "./test-runner-interface.ts";

const WRITERS = 8;
const APPENDS_PER_WRITER = 75;

export function subscribeContract({ describe, expect, open, test }: Runner): void {
  describe("subscribe", () => {
    test("gives existing events, then new ones, in order", async () => {
      await using store = await open();
      await store.append("a", newEvents(3));
      const seen = follow(store, 5);
      await store.append("a", newEvents(2));
      expect((await seen).map((event) => event.position)).toEqual([1, 2, 3, 4, 5]);
    });

    test("skips and repeats nothing during concurrent writes", async () => {
      await using store = await open();
      const total = WRITERS * APPENDS_PER_WRITER;
      const followers = [1, 1, 350].map((from) => follow(store, total - from + 1, { from }));
      const writers = Array.from({ length: WRITERS }, async (_, writer) => {
        for (let count = 0; count < APPENDS_PER_WRITER; count += 1) await store.append(`s${writer}`, [newEvent()]);
      });
      await Promise.all(writers);
      for (const [index, from] of [1, 1, 350].entries()) {
        const positions = (await followers[index]!).map((event) => event.position);
        expect(positions).toEqual(Array.from({ length: total - from + 1 }, (_, offset) => from + offset));
      }
    });

    test("gives live events exactly as a read does", async () => {
      await using store = await open();
      await store.append("a", [newEvent("Before")]);
      const data = { z: 1, dropped: undefined, date: new Date(0), nested: [undefined, Number.NaN, -0], a: "\ud800\0" };
      const seen = follow(store, 3);
      await store.append("a", [newEvent("Live", data), newEvent("Live", null)]);
      expect(await seen).toStrictEqual(await take(store.read()));
    });

    test("gives only the events of a stream or of some types", async () => {
      await using store = await open();
      await store.append("a", [newEvent("T1")]);
      const ofStream = follow(store, 2, { stream: "b" });
      const ofTypes = follow(store, 3, { types: ["T1", "T3"] });
      await store.append("b", [newEvent("T2"), newEvent("T3")]);
      await store.append("a", [newEvent("T1"), newEvent("T2")]);
      expect((await ofStream).map((event) => event.position)).toEqual([2, 3]);
      expect((await ofTypes).map((event) => event.position)).toEqual([1, 3, 4]);
    });

    test("gives the same events in batches", async () => {
      await using store = await open();
      await store.append("a", newEvents(3));
      const { signal } = new AbortController();
      const batches = store.subscribeBatches({ from: 2, types: ["Tested", "Late"], signal });
      await store.append("b", [newEvent("Left out"), newEvent("Late"), newEvent("Late")]);
      const seen: number[] = [];
      for await (const batch of batches) {
        expect(batch.length > 0).toBe(true);
        seen.push(...batch.map(({ position }) => position));
        if (seen.length >= 4) break;
      }
      expect(seen).toEqual([2, 3, 5, 6]);
    });

    test("waits for a future position", async () => {
      await using store = await open();
      const seen = follow(store, 1, { from: 4 });
      await store.append("a", newEvents(5));
      expect((await seen)[0]?.position).toBe(4);
    });

    test("loses no event for a subscriber that is slower than the writers", async () => {
      await using store = await open();
      const seen: number[] = [];
      const abort = new AbortController();
      await store.append("a", [newEvent()]);
      for await (const event of store.subscribe({ from: 1, signal: abort.signal })) {
        seen.push(event.position);
        // While this subscriber handles one event, ten more are appended.
        if (event.position <= 30) await store.append("a", newEvents(10));
        if (event.position === 301) abort.abort();
      }
      expect(seen).toEqual(Array.from({ length: 301 }, (_, index) => index + 1));
    });

    test("ends at once if it is aborted while it waits", async () => {
      await using store = await open();
      const abort = new AbortController();
      const waiting = take(store.subscribe({ from: 1, signal: abort.signal }));
      abort.abort();
      expect(await waiting).toEqual([]);
    });

    test("gives no further event after an abort", async () => {
      await using store = await open();
      await store.append("a", newEvents(10));
      const abort = new AbortController();
      const seen: number[] = [];
      for await (const event of store.subscribe({ from: 1, signal: abort.signal })) {
        seen.push(event.position);
        if (event.position === 3) abort.abort();
      }
      expect(seen).toEqual([1, 2, 3]);
      expect(await take(store.subscribe({ from: 1, signal: abort.signal }))).toEqual([]);
    });
  });
}

function follow(
  store: EventStore,
  count: number,
  query: { from?: number; stream?: string; types?: readonly string[] } = {},
) {
  return take(store.subscribe({ from: 1, ...query, signal: new AbortController().signal }), count);
}
