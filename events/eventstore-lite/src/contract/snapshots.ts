import { SnapshotAhead } from "../errors.ts";
import { newEvents, refusalOf } from "./events.ts";
import type { Runner } from "./runner.ts";

export function snapshotContract({ describe, expect, open, test }: Runner): void {
  describe("snapshots", () => {
    test("load what was saved last under that name", async () => {
      await using store = await open();
      await store.append("a", newEvents(9));
      expect(await store.snapshots.load("stats")).toBeUndefined();
      await store.snapshots.save("stats", { version: 1, position: 7, state: '{"sent":1}' });
      await store.snapshots.save("other", { version: 1, position: 1, state: "{}" });
      await store.snapshots.save("stats", { version: 2, position: 9, state: '{"sent":2}' });
      expect(await store.snapshots.load("stats")).toEqual({ version: 2, position: 9, state: '{"sent":2}' });
    });

    test("that hold more than the log are not handed out: the log has lost its end", async () => {
      await using store = await open();
      await store.append("a", newEvents(2));
      await store.snapshots.save("stats", { version: 1, position: 2, state: "{}" });
      expect(await store.snapshots.load("stats")).toMatchObject({ position: 2 });
      await store.snapshots.save("stats", { version: 1, position: 3, state: "{}" });
      expect(await refusalOf(store.snapshots.load("stats"))).toBeInstanceOf(SnapshotAhead);
    });
  });
}
