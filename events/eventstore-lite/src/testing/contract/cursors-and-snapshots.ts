import { CursorRefused, SnapshotAhead } from "../../errors.ts";
import type { Cursor, EventStore } from "../../event-store-interface.ts";
import { newEvents, refusalOf, take } from "./make-events-and-collect-results.ts";
import type { Runner } from "./test-runner-interface.ts";

export function cursorContract({ describe, expect, open, test }: Runner): void {
  describe("a cursor", () => {
    test("gives the position at which its consumer continues", async () => {
      await using store = await open();
      const beginning = store.cursor(0);
      await store.append("a", newEvents(5));
      const cursors = [beginning, store.cursor(3), store.cursor(5)];
      expect(await Promise.all(cursors.map((cursor) => store.after(cursor)))).toEqual([1, 4, 6]);
      const from = await store.after(store.cursor(3));
      const events = store.subscribe({ from, signal: new AbortController().signal });
      expect((await take(events, 2)).map(({ position }) => position)).toEqual([4, 5]);
    });

    test("survives serialization as JSON", async () => {
      await using store = await open();
      await store.append("a", newEvents(1));
      expect(await store.after(JSON.parse(JSON.stringify(store.cursor(1))) as Cursor)).toBe(2);
    });

    test("is refused by another log", async () => {
      await using store = await open();
      await using other = await open();
      expect(await refusal(store, other.cursor(0))).toBe("other-store");
      expect(await refusal(store, { ...store.cursor(0), epoch: other.epoch })).toBe("unknown-epoch");
    });

    test("beyond the end of the log is refused", async () => {
      await using store = await open();
      await store.append("a", newEvents(2));
      expect(await refusal(store, store.cursor(3))).toBe("beyond-head");
    });
  });
}

async function refusal(store: EventStore, cursor: Cursor): Promise<unknown> {
  const fault = await refusalOf(store.after(cursor));
  return fault instanceof CursorRefused ? fault.reason : fault;
}

export function snapshotContract({ describe, expect, open, test }: Runner): void {
  describe("snapshots", () => {
    test("load the state last saved under their name", async () => {
      await using store = await open();
      await store.append("a", newEvents(9));
      expect(await store.snapshots.load("stats")).toBeUndefined();
      await store.snapshots.save("stats", { version: 1, position: 7, state: '{"sent":1}' });
      await store.snapshots.save("other", { version: 1, position: 1, state: "{}" });
      await store.snapshots.save("stats", { version: 2, position: 9, state: '{"sent":2}' });
      expect(await store.snapshots.load("stats")).toEqual({ version: 2, position: 9, state: '{"sent":2}' });
    });

    test("can be saved under a second name, listed by prefix and removed", async () => {
      await using store = await open();
      await store.append("a", newEvents(9));
      await store.snapshots.save("stats", { version: 1, position: 7, state: "ä" }, "past/stats/7");
      await store.snapshots.save("stats", { version: 1, position: 9, state: "" }, "past/stats/9");
      await store.snapshots.save("past/stats", { version: 1, position: 1, state: "s" });
      await store.snapshots.save("past/z", { version: 2, position: 12, state: "s" });
      const seventh = { name: "past/stats/7", version: 1, position: 7, bytes: 2 };
      const ninth = { name: "past/stats/9", version: 1, position: 9, bytes: 0 };
      expect(await store.snapshots.list("past/stats/")).toEqual([seventh, ninth]);
      expect((await store.snapshots.list("past/")).map(({ name }) => name)).toEqual([
        "past/stats",
        "past/stats/7",
        "past/stats/9",
        "past/z",
      ]);
      expect(await store.snapshots.load("past/stats/7")).toEqual({ version: 1, position: 7, state: "ä" });
      await store.snapshots.remove(["past/stats/7", "past/none"]);
      await store.snapshots.remove([]);
      expect(await store.snapshots.list("past/stats/")).toEqual([ninth]);
      expect(await store.snapshots.load("past/stats/7")).toBeUndefined();
      expect(await store.snapshots.load("stats")).toEqual({ version: 1, position: 9, state: "" });
    });

    test("are not replaced by an earlier position of the same version", async () => {
      await using store = await open();
      await store.append("a", newEvents(9));
      await store.snapshots.save("stats", { version: 1, position: 7, state: "seven" });
      await store.snapshots.save("stats", { version: 1, position: 5, state: "five" });
      expect(await store.snapshots.load("stats")).toEqual({ version: 1, position: 7, state: "seven" });
      await store.snapshots.save("stats", { version: 1, position: 7, state: "seven again" });
      expect(await store.snapshots.load("stats")).toEqual({ version: 1, position: 7, state: "seven again" });
      await store.snapshots.save("stats", { version: 2, position: 6, state: "six" });
      expect(await store.snapshots.load("stats")).toEqual({ version: 2, position: 6, state: "six" });
    });

    test("ahead of the log are refused", async () => {
      await using store = await open();
      await store.append("a", newEvents(2));
      await store.snapshots.save("stats", { version: 1, position: 2, state: "{}" });
      expect(await store.snapshots.load("stats")).toMatchObject({ position: 2 });
      await store.snapshots.save("stats", { version: 1, position: 3, state: "{}" });
      expect(await refusalOf(store.snapshots.load("stats"))).toBeInstanceOf(SnapshotAhead);
    });
  });
}
