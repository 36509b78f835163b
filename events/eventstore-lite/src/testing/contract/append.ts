import { VersionConflict } from "../../errors.ts";
import { newEvent, newEvents, refusalOf, take } from "./make-events-and-collect-results.ts";
import type { Runner } from "./test-runner-interface.ts";

/** Contract tests of positions, versions and expected versions, and that a refused append leaves nothing behind. */
export function appendContract({ describe, expect, open, test }: Runner): void {
  describe("append", () => {
    test("gives gap-free positions over the log and gap-free versions within each stream", async () => {
      await using store = await open();
      expect(await store.append("a", newEvents(2))).toEqual({ first: 1, last: 2, version: 2, repeated: false });
      expect(await store.append("b", newEvents(1))).toEqual({ first: 3, last: 3, version: 1, repeated: false });
      expect(await store.append("a", newEvents(3))).toEqual({ first: 4, last: 6, version: 5, repeated: false });

      const events = await take(store.read());
      expect(events.map((event) => event.position)).toEqual([1, 2, 3, 4, 5, 6]);
      expect(events.map((event) => `${event.stream}@${event.version}`)).toEqual([
        "a@1",
        "a@2",
        "b@1",
        "a@3",
        "a@4",
        "a@5",
      ]);
    });

    test("records what the caller wrote", async () => {
      await using store = await open({ clock: () => Date.UTC(2026, 0, 2, 3, 4, 5, 678) });
      const event = { id: "0198f2a0-0000-7000-8000-000000000000", type: "Clicked", data: { n: 1 }, meta: { by: "me" } };
      await store.append("link", [event]);
      const [recorded] = await take(store.read());
      const hash = expect.stringMatching(/^[0-9a-f]{64}$/);
      expect(recorded).toEqual({
        ...event,
        position: 1,
        stream: "link",
        version: 1,
        time: "2026-01-02T03:04:05.678Z",
        hash,
      });
    });

    test("keeps the caller's order when appends are not awaited", async () => {
      await using store = await open();
      const appends = Array.from({ length: 500 }, (_, index) => store.append(`s${index % 7}`, [newEvent("T", index)]));
      const results = await Promise.all(appends);
      expect(results.map((result) => result.first)).toEqual(results.map((_, index) => index + 1));
      expect((await take(store.read())).map((event) => event.data)).toEqual(results.map((_, index) => index));
    });

    test("takes the times of events from the same clock as `now`", async () => {
      await using given = await open({ clock: () => 5_000 });
      expect(await given.now()).toBe(5_000);
      await using store = await open();
      const before = await store.now();
      await store.append("a", [newEvent()]);
      const [{ time } = { time: "" }] = await take(store.read());
      const recorded = Date.parse(time);
      expect(before <= recorded && recorded <= (await store.now())).toBe(true);
    });

    test("never records a time before that of the previous event", async () => {
      const ticks = [5_000, 9_000, 2_000, 9_500];
      let now = 0;
      await using store = await open({ clock: () => now });
      for (const tick of ticks) {
        now = tick;
        await store.append("a", [newEvent()]);
      }
      const times = (await take(store.read())).map((event) => Date.parse(event.time));
      expect(times).toEqual([5_000, 9_000, 9_000, 9_500]);
    });
  });

  describe("an expected version", () => {
    test("`none` requires an empty stream", async () => {
      await using store = await open();
      await store.append("a", [newEvent()], { expected: "none" });
      expect(await refusalOf(store.append("a", [newEvent()], { expected: "none" }))).toBeInstanceOf(VersionConflict);
    });

    test("`exists` requires a stream with events", async () => {
      await using store = await open();
      expect(await refusalOf(store.append("a", [newEvent()], { expected: "exists" }))).toBeInstanceOf(VersionConflict);
      await store.append("a", [newEvent()]);
      expect(await store.append("a", [newEvent()], { expected: "exists" })).toMatchObject({ version: 2 });
    });

    test("a number requires exactly that version, and 0 an empty stream", async () => {
      await using store = await open();
      await store.append("a", [newEvent()], { expected: 0 });
      await store.append("a", [newEvent()], { expected: 1 });
      expect(await refusalOf(store.append("a", [newEvent()], { expected: 1 }))).toBeInstanceOf(VersionConflict);
      expect(await refusalOf(store.append("a", [newEvent()], { expected: 3 }))).toBeInstanceOf(VersionConflict);
    });

    test("fails a conflicting append with the actual version, and nothing is appended", async () => {
      await using store = await open();
      await store.append("a", newEvents(2));
      const refused = store.append("a", newEvents(3), { expected: 5 });
      expect(await refusalOf(refused)).toMatchObject({ stream: "a", expected: 5, actual: 2 });
      expect(await store.head()).toMatchObject({ position: 2 });
    });

    test("leaves the stream's version unchanged after a conflict", async () => {
      await using store = await open();
      await store.append("a", newEvents(2));
      expect(await refusalOf(store.append("a", newEvents(4), { expected: 0 }))).toBeInstanceOf(VersionConflict);
      expect(await store.append("a", [newEvent()], { expected: 2 })).toMatchObject({ first: 3, version: 3 });
    });

    test("fails no other concurrent append after a conflict", async () => {
      await using store = await open();
      const results = await Promise.allSettled([
        store.append("a", [newEvent("First")]),
        store.append("a", [newEvent("Refused")], { expected: "none" }),
        store.append("b", [newEvent("Second")]),
        store.append("a", [newEvent("Third")], { expected: 1 }),
      ]);
      expect(results.map((result) => result.status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
      expect((await take(store.read())).map((event) => event.type)).toEqual(["First", "Second", "Third"]);
    });

    test("lets exactly one of many concurrent appends succeed", async () => {
      await using store = await open();
      await store.append("a", [newEvent()]);
      const racers = Array.from({ length: 50 }, (_, index) =>
        store.append("a", [newEvent("Won", index)], { expected: 1 }),
      );
      const results = await Promise.allSettled(racers);
      expect(results.filter((result) => result.status === "fulfilled")).toHaveLength(1);
      expect(await take(store.read({ types: ["Won"] }))).toHaveLength(1);
    });
  });
}
