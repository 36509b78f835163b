import { LeaseLost } from "../../errors.ts";
import type { Lease } from "../../event-store-interface.ts";
import { newEvent, refusalOf, take } from "./make-events-and-collect-results.ts";
import type { Runner } from "./test-runner-interface.ts";

const TTL_MS = 1_000;

/**
 * Contract tests of leases with fencing tokens: one holder at a time, and a holder whose lease has expired cannot
 * append.
 */
export function leaseContract({ describe, expect, open, test }: Runner): void {
  describe("leases", () => {
    test("have one holder at a time", async () => {
      await using store = await open();
      expect(await store.leases.acquire("run", { holder: "a", ttlMs: TTL_MS })).toMatchObject({
        holder: "a",
        token: 1,
      });
      expect(await store.leases.acquire("run", { holder: "b", ttlMs: TTL_MS })).toBeUndefined();
      expect(await store.leases.acquire("other", { holder: "b", ttlMs: TTL_MS })).toBeDefined();
    });

    test("are renewed by their holder, with the same token", async () => {
      let now = 0;
      await using store = await open({ clock: () => now });
      await store.leases.acquire("run", { holder: "a", ttlMs: TTL_MS });
      now = 900;
      const renewed = await store.leases.acquire("run", { holder: "a", ttlMs: TTL_MS });
      expect(renewed).toEqual({ name: "run", holder: "a", token: 1, expiresAt: new Date(1_900) });
    });

    test("expire and are then acquired with a larger token", async () => {
      let now = 0;
      await using store = await open({ clock: () => now });
      await store.leases.acquire("run", { holder: "a", ttlMs: TTL_MS });
      now = TTL_MS;
      expect(await store.leases.acquire("run", { holder: "b", ttlMs: TTL_MS })).toMatchObject({
        holder: "b",
        token: 2,
      });
    });

    test("acquired under a clock that ran ahead do not outlast its correction", async () => {
      let now = 86_400_000;
      await using store = await open({ clock: () => now });
      await store.leases.acquire("run", { holder: "a", ttlMs: TTL_MS });
      now = 0;
      const acquired = await store.leases.acquire("run", { holder: "b", ttlMs: TTL_MS });
      expect(acquired).toMatchObject({ holder: "b", token: 2, expiresAt: new Date(TTL_MS) });
    });

    test("survive a clock that is set back by less than their time to live", async () => {
      let now = 2 * TTL_MS;
      await using store = await open({ clock: () => now });
      await store.leases.acquire("run", { holder: "a", ttlMs: TTL_MS });
      now -= TTL_MS / 2;
      expect(await store.leases.acquire("run", { holder: "b", ttlMs: TTL_MS })).toBeUndefined();
    });

    test("can be stolen, with a larger token", async () => {
      await using store = await open();
      await store.leases.acquire("run", { holder: "a", ttlMs: TTL_MS });
      const stolen = await store.leases.acquire("run", { holder: "b", ttlMs: TTL_MS, steal: true });
      expect(stolen).toMatchObject({ holder: "b", token: 2 });
    });

    test("are free after a release, and their token keeps growing", async () => {
      await using store = await open();
      const lease = await store.leases.acquire("run", { holder: "a", ttlMs: TTL_MS });
      await store.leases.release(lease as Lease);
      expect(await store.leases.acquire("run", { holder: "b", ttlMs: TTL_MS })).toMatchObject({ token: 2 });
    });

    test("are not released by a holder that lost them", async () => {
      await using store = await open();
      const lost = await store.leases.acquire("run", { holder: "a", ttlMs: TTL_MS });
      await store.leases.acquire("run", { holder: "b", ttlMs: TTL_MS, steal: true });
      await store.leases.release(lost as Lease);
      expect(await store.leases.acquire("run", { holder: "c", ttlMs: TTL_MS })).toBeUndefined();
    });
  });

  describe("the list of leases", () => {
    test("has the held leases with their holders", async () => {
      let now = 0;
      await using store = await open({ clock: () => now });
      const list = () => store.leases.list(["released", "run", "other", "never"]);
      expect(await list()).toEqual([]);
      await store.leases.acquire("unasked", { holder: "a", ttlMs: 2 * TTL_MS });
      await store.leases.acquire("run", { holder: "a", ttlMs: 2 * TTL_MS });
      await store.leases.acquire("other", { holder: "b", ttlMs: TTL_MS });
      const released = await store.leases.acquire("released", { holder: "c", ttlMs: TTL_MS });
      await store.leases.release(released as Lease);
      const run = { name: "run", holder: "a", token: 1, expiresAt: new Date(2 * TTL_MS) };
      expect(await list()).toEqual([{ name: "other", holder: "b", token: 1, expiresAt: new Date(TTL_MS) }, run]);
      now = TTL_MS;
      expect(await list()).toEqual([run]);
    });
  });

  describe("a fence", () => {
    test("accepts the holder's appends and refuses the old token after a theft", async () => {
      await using store = await open();
      await store.leases.acquire("run", { holder: "a", ttlMs: TTL_MS });
      await store.append("a", [newEvent("ByHolder")], { fence: { lease: "run", token: 1 } });
      await store.leases.acquire("run", { holder: "b", ttlMs: TTL_MS, steal: true });
      const late = store.append("a", [newEvent("TooLate")], { fence: { lease: "run", token: 1 } });
      expect(await refusalOf(late)).toBeInstanceOf(LeaseLost);
      expect((await take(store.read())).map((event) => event.type)).toEqual(["ByHolder"]);
    });

    test("is refused for an expired lease, even if it is still free", async () => {
      let now = 0;
      await using store = await open({ clock: () => now });
      await store.leases.acquire("run", { holder: "a", ttlMs: TTL_MS });
      now = TTL_MS;
      const late = store.append("a", [newEvent()], { fence: { lease: "run", token: 1 } });
      expect(await refusalOf(late)).toBeInstanceOf(LeaseLost);
    });

    test("is checked in the order of appends and releases", async () => {
      await using store = await open();
      const lease = await store.leases.acquire("run", { holder: "a", ttlMs: TTL_MS });
      const fence = { lease: "run", token: 1 };
      const results = await Promise.allSettled([
        store.append("a", [newEvent("Before")], { fence }),
        store.leases.release(lease as Lease),
        store.append("a", [newEvent("After")], { fence }),
      ]);
      expect(results.map((result) => result.status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
    });

    test("is refused for a lease that never existed", async () => {
      await using store = await open();
      const append = store.append("a", [newEvent()], { fence: { lease: "never", token: 1 } });
      expect(await refusalOf(append)).toBeInstanceOf(LeaseLost);
    });
  });
}
