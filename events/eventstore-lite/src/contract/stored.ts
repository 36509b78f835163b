import { newEvent, take } from "./events.ts";
import type { Runner } from "./runner.ts";

export function storedContract({ describe, expect, open, test }: Runner): void {
  describe("stored events", () => {
    test("are those that a read gives, for a store that leaves events as they are", async () => {
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
