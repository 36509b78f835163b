import { StoreClosed } from "../../errors.ts";
import { newEvent, refusalOf, take } from "./make-events-and-collect-results.ts";
import type { Runner } from "./test-runner-interface.ts";

export function closeContract({ describe, expect, open, test }: Runner): void {
  describe("closing", () => {
    test("settles the appends accepted before", async () => {
      const store = await open();
      const appends = Array.from({ length: 300 }, () => store.append("a", [newEvent()]));
      await store[Symbol.asyncDispose]();
      const results = await Promise.all(appends);
      expect(results.at(-1)).toMatchObject({ first: 300 });
    });

    test("refuses later calls", async () => {
      const store = await open();
      await store[Symbol.asyncDispose]();
      expect(await refusalOf(store.append("a", [newEvent()]))).toBeInstanceOf(StoreClosed);
      expect(await refusalOf(store.head())).toBeInstanceOf(StoreClosed);
      expect(await refusalOf(store.streamHead("a"))).toBeInstanceOf(StoreClosed);
      expect(await refusalOf(store.hashAt(1))).toBeInstanceOf(StoreClosed);
      expect(await refusalOf(store.verify())).toBeInstanceOf(StoreClosed);
      expect(await refusalOf(take(store.read()))).toBeInstanceOf(StoreClosed);
      expect(await refusalOf(store.snapshots.load("s"))).toBeInstanceOf(StoreClosed);
      expect(await refusalOf(store.leases.acquire("l", { holder: "h", ttlMs: 1 }))).toBeInstanceOf(StoreClosed);
    });

    test("may be requested twice", async () => {
      const store = await open();
      await Promise.all([store[Symbol.asyncDispose](), store[Symbol.asyncDispose]()]);
      await store[Symbol.asyncDispose]();
    });

    test("ends subscriptions with an error", async () => {
      const store = await open();
      await store.append("a", [newEvent()]);
      const subscription = store.subscribe({ from: 1, signal: new AbortController().signal })[Symbol.asyncIterator]();
      await subscription.next();
      const waiting = subscription.next();
      const [refused] = await Promise.all([refusalOf(waiting), store[Symbol.asyncDispose]()]);
      expect(refused).toBeInstanceOf(StoreClosed);
    });
  });
}
