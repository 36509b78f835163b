import { KeyReused, VersionConflict } from "../../errors.ts";
import { newEvent, newEvents, refusalOf, take } from "./make-events-and-collect-results.ts";
import type { Runner } from "./test-runner-interface.ts";

/** Contract tests that a caller which missed the answer to its append may repeat it. */
export function idempotencyContract({ describe, expect, open, test }: Runner): void {
  describe("an idempotency key", () => {
    test("makes a repeat return the first result and append nothing", async () => {
      await using store = await open();
      const first = await store.append("a", newEvents(2), { key: "k" });
      await store.append("a", [newEvent()]);
      expect(await store.append("a", newEvents(2), { key: "k" })).toEqual({ ...first, repeated: true });
      expect(await store.head()).toMatchObject({ position: 3 });
    });

    test("applies to concurrent appends", async () => {
      await using store = await open();
      const results = await Promise.all([1, 2, 3].map(() => store.append("a", [newEvent()], { key: "k" })));
      expect(results.map((result) => result.repeated)).toEqual([false, true, true]);
      expect(await take(store.read())).toHaveLength(1);
    });

    test("is refused with another digest, and nothing is appended", async () => {
      await using store = await open();
      const asked = { key: "k", digest: "one" };
      const first = await store.append("a", [newEvent()], asked);
      const other = store.append("a", [newEvent()], { key: "k", digest: "other" });
      expect(await refusalOf(other)).toBeInstanceOf(KeyReused);
      expect(await store.append("a", [newEvent()], asked)).toEqual({ ...first, repeated: true });
      expect(await store.head()).toMatchObject({ position: 1 });
    });

    test("is refused with another digest in concurrent appends, without failing others", async () => {
      await using store = await open();
      const appends = ["one", "other", "one"].map((digest) => store.append("a", [newEvent()], { key: "k", digest }));
      const [first, other, again] = await Promise.allSettled([...appends, store.append("b", [newEvent()])]);
      expect([first, again]).toMatchObject([{ value: { repeated: false } }, { value: { repeated: true } }]);
      expect(other).toMatchObject({ status: "rejected", reason: expect.any(KeyReused) });
      expect(await store.head()).toMatchObject({ position: 2 });
    });

    test("compares no digests if one of the appends has none", async () => {
      await using store = await open();
      await store.append("a", [newEvent()], { key: "k", digest: "one" });
      await store.append("a", [newEvent()], { key: "bare" });
      expect(await store.append("a", [newEvent()], { key: "k" })).toMatchObject({ repeated: true });
      expect(await store.append("a", [newEvent()], { key: "bare", digest: "one" })).toMatchObject({ repeated: true });
    });

    test("takes precedence over the expected version", async () => {
      await using store = await open();
      await store.append("a", [newEvent()], { key: "k", expected: "none" });
      expect(await store.append("a", [newEvent()], { key: "k", expected: "none" })).toMatchObject({ repeated: true });
    });

    test("is not used up by a refused append", async () => {
      await using store = await open();
      const refused = store.append("a", [newEvent()], { key: "k", expected: "exists" });
      expect(await refusalOf(refused)).toBeInstanceOf(VersionConflict);
      expect(await store.append("a", [newEvent()], { key: "k" })).toMatchObject({ first: 1, repeated: false });
    });
  });
}
