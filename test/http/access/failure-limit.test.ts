// On no harness.
import { expect, test } from "bun:test";
import { createFailureLimit, shareFailures } from "../../../src/http/access/failure-limit.ts";
import { sqliteSecrets } from "../../../src/vault/sqlite-secrets.ts";
import { openVault, type Vault } from "../../../src/vault/vault.ts";
import { temporaryFolder } from "../../harness/temporary.ts";

const MASTER = new Uint8Array(32).fill(7);
const KEY = new Uint8Array(32).fill(9);
const MINUTE = 60_000;

/** Instances that share a vault and a limit of three failures a minute. */
async function openInstances(count: number) {
  const folder = temporaryFolder();
  const world = { now: 100 * MINUTE, claims: [] as string[], isAway: false };
  const place = sqliteSecrets(folder.file("vault.sqlite"));
  const vaults = await Promise.all(Array.from({ length: count }, () => openVault(place, MASTER)));
  const instances = vaults.map((vault) => {
    const claim: Vault["claim"] = async (name, until, now) => {
      world.claims.push(name);
      if (world.isAway) throw new Error("away");
      return vault.claim(name, until, now);
    };
    return shareFailures({ claim, key: KEY, clock: () => world.now }, 3);
  });
  return {
    world,
    /** Fails once at each of these instances, in order. */
    async failAt(numbers: readonly number[], address = "192.0.2.1") {
      const waits: (number | undefined)[] = [];
      for (const number of numbers) waits.push(await instances[number]?.fail(address));
      return waits;
    },
    failAtOnce: (times: number) =>
      Promise.all(Array.from({ length: times }, () => instances.map(({ fail }) => fail("a"))).flat()),
    async [Symbol.asyncDispose]() {
      for (const vault of vaults) await vault[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

test("alone, so many a minute are let through to a refusal, and then one waits", async () => {
  const clock = { now: 0 };
  const { fail } = createFailureLimit(() => clock.now, 2);
  expect([await fail("a"), await fail("a"), await fail("a"), await fail("b")]).toEqual([
    undefined,
    undefined,
    60,
    undefined,
  ]);
});

test("an address that tries tokens at several instances in turn gets no more 401", async () => {
  await using instances = await openInstances(3);
  expect(await instances.failAt([0, 1, 2, 0, 1, 2])).toEqual([undefined, undefined, undefined, 60, 60, 60]);
});

test("nor does one that tries them at all instances at once", async () => {
  await using instances = await openInstances(3);
  const waits = await instances.failAtOnce(4);
  expect(waits.filter((wait) => wait === undefined)).toHaveLength(3);
});

test("each address has its own count, and each minute a new one", async () => {
  await using instances = await openInstances(2);
  await instances.failAt([0, 0, 0]);
  expect(await instances.failAt([1], "192.0.2.2")).toEqual([undefined]);
  instances.world.now += 59_000;
  expect(await instances.failAt([1])).toEqual([1]);
  instances.world.now += 1_000;
  expect(await instances.failAt([1])).toEqual([undefined]);
});

test("once all places are known to be taken the claims are not asked any more", async () => {
  await using instances = await openInstances(2);
  await instances.failAt([0, 0, 0, 1]);
  const { claims } = instances.world;
  const asked = claims.length;
  await instances.failAt([0, 1, 0, 1]);
  expect(claims).toHaveLength(asked);
});

test("no name tells an address", async () => {
  await using instances = await openInstances(1);
  await instances.failAt([0, 0]);
  expect(instances.world.claims).toHaveLength(2);
  expect(instances.world.claims.join()).not.toContain("192.0.2");
});

test("while the vault is out of reach each instance counts for itself", async () => {
  await using instances = await openInstances(2);
  instances.world.isAway = true;
  expect(await instances.failAt([0, 0, 0, 0, 1])).toEqual([undefined, undefined, undefined, 60, undefined]);
});
