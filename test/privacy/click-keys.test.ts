// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { createClickKeys, fetchTree, puncture, type ClickKeys, keyAt } from "../../src/privacy/click-keys.ts";
import { splitRef, type KeyStore, type NamedKey } from "../../src/privacy/key-store.ts";
import { openKeys } from "../harness/in-process/keyring-in-temporary-file.ts";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");
const DAY_MS = 86_400_000;

async function prepared(keys: KeyStore): Promise<ClickKeys> {
  const clicks = createClickKeys(keys);
  await clicks.prepare(NOW);
  return clicks;
}

function leafOf(clicks: ClickKeys, ip: string): NamedKey {
  const leaf = clicks.of(ip, NOW);
  if (leaf === undefined) throw new Error("there is no leaf at hand");
  return leaf;
}

/** Returns the key that the store holds for this ref. */
async function storedKey(keys: KeyStore, ref: string): Promise<Uint8Array | undefined> {
  const [root, leaf] = splitRef(ref);
  return keyAt(await fetchTree(keys, root), leaf);
}

function addresses(count: number): readonly string[] {
  return Array.from({ length: count }, (_, n) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
}

test("each address has its own leaf, and a repeated address keeps it for the day", async () => {
  await using world = openKeys();
  const { keys } = await world.open();
  const clicks = await prepared(keys);
  const { ref } = leafOf(clicks, "203.0.113.7");
  const others = new Set<string>();
  for (const [n, ip] of addresses(100_000).entries()) {
    others.add(leafOf(clicks, ip).ref);
    if (n % 1_000 === 0) expect(leafOf(clicks, "203.0.113.7").ref).toBe(ref);
  }
  expect(others.size).toBe(100_000);
  expect(others.has(ref)).toBe(false);
  await clicks.prepare(NOW + DAY_MS);
  expect(clicks.of("203.0.113.7", NOW + DAY_MS)?.ref).not.toBe(ref);
});

test("two processes assign different leaves, and forgetting some leaves the others readable", async () => {
  await using world = openKeys();
  const [{ keys }, { keys: others }] = [await world.open(), await world.open()];
  const [here, there] = [await prepared(keys), await prepared(others)];
  const ofHere = addresses(2_000).map((ip) => leafOf(here, ip));
  const ofThere = addresses(2_000).map((ip) => leafOf(there, ip));
  expect(new Set([...ofHere, ...ofThere].map(({ ref }) => ref)).size).toBe(4_000);

  const gone = ofHere.slice(0, 50);
  expect(
    await others.change((within) =>
      puncture(
        within,
        gone.map(({ ref }) => ref),
      ),
    ),
  ).toBe(50);
  for (const { ref } of gone) expect(await storedKey(keys, ref)).toBeUndefined();
  for (const { ref, key } of [ofHere[50]!, ...ofThere.slice(0, 50)]) expect(await storedKey(keys, ref)).toEqual(key);
});

test("a repeated address gets the same key, which the store can derive", async () => {
  await using world = openKeys();
  const { keys } = await world.open();
  const clicks = await prepared(keys);
  const [first, again] = [leafOf(clicks, "203.0.113.7"), leafOf(clicks, "203.0.113.7")];
  expect(again).toEqual(first);
  expect(await storedKey(keys, first.ref)).toEqual(first.key);
});

test("many leaves of a day are punctured together, and no others", async () => {
  await using world = openKeys();
  const { keys } = await world.open();
  const clicks = await prepared(keys);
  const leaves = addresses(600).map((ip) => leafOf(clicks, ip));
  const [gone, kept] = [leaves.slice(0, 300).map(({ ref }) => ref), leaves.slice(300)];
  expect(await keys.change((within) => puncture(within, [...gone, gone[0]!]))).toBe(300);
  for (const ref of gone) expect(await storedKey(keys, ref)).toBeUndefined();
  for (const { ref, key } of kept) expect(await storedKey(keys, ref)).toEqual(key);
  expect(await keys.change((within) => puncture(within, gone))).toBe(0);
});

test("an address with a punctured leaf gets an unused leaf with another key", async () => {
  await using world = openKeys();
  const { keys } = await world.open();
  const clicks = await prepared(keys);
  const { ref, key } = leafOf(clicks, "10.0.0.1");
  const next = ref.replace(/000000$/, "000001");
  await keys.change((within) => puncture(within, [ref, next]));
  clicks.refresh();
  expect(clicks.of("10.0.0.1", NOW)).toBeUndefined();
  await clicks.prepare(NOW);
  const again = leafOf(clicks, "10.0.0.1");
  expect([again.ref, again.key.toHex() === key.toHex()]).toEqual([ref.replace(/000000$/, "000002"), false]);
});

test("a day gets a new tree after another process deleted its keys", async () => {
  await using world = openKeys();
  const { keys } = await world.open();
  const clicks = await prepared(keys);
  const { ref } = leafOf(clicks, "203.0.113.7");
  await keys.change((within) => within.remove(splitRef(ref)[0]));
  clicks.refresh();
  await clicks.prepare(NOW);
  const again = leafOf(clicks, "203.0.113.7");
  expect(await storedKey(keys, ref)).toBeUndefined();
  expect(await storedKey(keys, again.ref)).toEqual(again.key);
});

test("keys deleted during a fetch are not handed out", async () => {
  await using world = openKeys();
  const { keys } = await world.open();
  let meanwhile: (() => Promise<void>) | undefined;
  const clicks = createClickKeys({
    ...keys,
    async under(prefix) {
      const found = await keys.under(prefix);
      await meanwhile?.();
      meanwhile = undefined;
      return found;
    },
  });
  await clicks.prepare(NOW);
  const { ref } = leafOf(clicks, "203.0.113.7");
  clicks.refresh();
  meanwhile = async () => {
    await keys.change((within) => within.remove(splitRef(ref)[0]));
    clicks.refresh();
  };
  await clicks.prepare(NOW);
  expect(clicks.of("203.0.113.7", NOW)).toBeUndefined();
});
