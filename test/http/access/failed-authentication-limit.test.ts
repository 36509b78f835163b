// These tests call the code directly.
import { expect, test } from "bun:test";
import { createFailureLimit, shareFailures } from "../../../src/http/access/failed-authentication-limit.ts";
import { sqliteSecrets } from "../../../src/vault/sqlite-secrets.ts";
import { openVault, type Vault } from "../../../src/vault/vault.ts";
import { temporaryFolder } from "../../harness/temporary-folder.ts";

const MASTER = new Uint8Array(32).fill(7);
const KEY = new Uint8Array(32).fill(9);
const MINUTE = 60_000;

/**
 * Opens `count` instances that share a vault. Through the vault they also share the limit, which is three failed
 * authentications per minute here.
 */
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
    /**
     * Counts one failed authentication of `address` at each of these instances, in this order. Returns how long each
     * instance makes the address wait.
     */
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

test("one instance allows a number of failures a minute per address, then requires a wait", async () => {
  const clock = { now: 0 };
  const { fail } = createFailureLimit(() => clock.now, 2);
  expect([await fail("a"), await fail("a"), await fail("a"), await fail("b")]).toEqual([
    undefined,
    undefined,
    60,
    undefined,
  ]);
});

test("an address that fails at several instances in turn is limited in total", async () => {
  await using instances = await openInstances(3);
  expect(await instances.failAt([0, 1, 2, 0, 1, 2])).toEqual([undefined, undefined, undefined, 60, 60, 60]);
});

test("an address that fails at all instances at once is limited in total", async () => {
  await using instances = await openInstances(3);
  const waits = await instances.failAtOnce(4);
  expect(waits.filter((wait) => wait === undefined)).toHaveLength(3);
});

test("failures are counted per address and minute", async () => {
  await using instances = await openInstances(2);
  await instances.failAt([0, 0, 0]);
  expect(await instances.failAt([1], "192.0.2.2")).toEqual([undefined]);
  instances.world.now += 59_000;
  expect(await instances.failAt([1])).toEqual([1]);
  instances.world.now += 1_000;
  expect(await instances.failAt([1])).toEqual([undefined]);
});

test("claims are not requested once the limit is known to be reached", async () => {
  await using instances = await openInstances(2);
  await instances.failAt([0, 0, 0, 1]);
  const { claims } = instances.world;
  const asked = claims.length;
  await instances.failAt([0, 1, 0, 1]);
  expect(claims).toHaveLength(asked);
});

test("the names of the claims do not contain the address", async () => {
  await using instances = await openInstances(1);
  await instances.failAt([0, 0]);
  expect(instances.world.claims).toHaveLength(2);
  expect(instances.world.claims.join()).not.toContain("192.0.2");
});

test("each instance counts for itself while the vault is unreachable", async () => {
  await using instances = await openInstances(2);
  instances.world.isAway = true;
  expect(await instances.failAt([0, 0, 0, 0, 1])).toEqual([undefined, undefined, undefined, 60, undefined]);
});
