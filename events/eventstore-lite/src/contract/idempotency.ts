import { describe, expect, test } from "bun:test";
import { VersionConflict } from "../errors.ts";
import { newEvent, newEvents, refusalOf, take } from "./events.ts";
import type { OpenStore } from "./open-store.ts";

/** A caller that did not hear the answer may ask again. */
export function idempotencyContract(open: OpenStore): void {
  describe("an idempotency key", () => {
    test("makes a repeat append nothing and give the first result", async () => {
      await using store = await open();
      const first = await store.append("a", newEvents(2), { key: "k" });
      await store.append("a", [newEvent()]);
      expect(await store.append("a", newEvents(2), { key: "k" })).toEqual({ ...first, repeated: true });
      expect(await store.head()).toMatchObject({ position: 3 });
    });

    test("works among appends of the same moment", async () => {
      await using store = await open();
      const results = await Promise.all([1, 2, 3].map(() => store.append("a", [newEvent()], { key: "k" })));
      expect(results.map((result) => result.repeated)).toEqual([false, true, true]);
      expect(await take(store.read())).toHaveLength(1);
    });

    test("answers before the expected version is looked at, which the first append itself has changed", async () => {
      await using store = await open();
      await store.append("a", [newEvent()], { key: "k", expected: "none" });
      expect(await store.append("a", [newEvent()], { key: "k", expected: "none" })).toMatchObject({ repeated: true });
    });

    test("is not used up by an append that was refused", async () => {
      await using store = await open();
      const refused = store.append("a", [newEvent()], { key: "k", expected: "exists" });
      expect(await refusalOf(refused)).toBeInstanceOf(VersionConflict);
      expect(await store.append("a", [newEvent()], { key: "k" })).toMatchObject({ first: 1, repeated: false });
    });
  });
}
