// On the memory harness.
import { expect, test } from "bun:test";
import { createClickKeys } from "../../src/privacy/click-keys.ts";
import { openKeyStore, type KeyStore } from "../../src/privacy/key-store.ts";
import { openKeys } from "../harness/memory/keyring.ts";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");

function openFile(world: ReturnType<typeof openKeys>): KeyStore {
  return openKeyStore(world);
}

test("no two addresses share a leaf, and one that comes often keeps its own", () => {
  using world = openKeys();
  using file = openFile(world);
  const clicks = createClickKeys(file);
  const { ref } = clicks.of("203.0.113.7", NOW);
  const others = new Set<string>();
  for (let n = 0; n < 100_000; n++) {
    others.add(clicks.of(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`, NOW).ref);
    if (n % 1_000 === 0) expect(clicks.of("203.0.113.7", NOW).ref).toBe(ref);
  }
  expect(others.size).toBe(100_000);
  expect(others.has(ref)).toBe(false);
  expect(clicks.of("203.0.113.7", NOW + 86_400_000).ref).not.toBe(ref);
});

test("an address that comes again is sealed with the key of the first time", () => {
  using world = openKeys();
  using file = openFile(world);
  const clicks = createClickKeys(file);
  const keys = Array.from({ length: 3 }, () => clicks.of("203.0.113.7", NOW).key.toHex());
  const { ref } = clicks.of("203.0.113.7", NOW);
  expect(keys).toEqual(Array.from({ length: 3 }, () => clicks.at(ref)!.toHex()));
});

test("many leaves of a day are punctured at once, and no others", () => {
  using world = openKeys();
  using file = openFile(world);
  const clicks = createClickKeys(file);
  const refOf = (n: number): string => clicks.of(`10.0.${n >> 8}.${n & 255}`, NOW).ref;
  const refs = Array.from({ length: 600 }, (_, n) => refOf(n));
  const keys = refs.map((ref) => clicks.at(ref));
  const [gone, kept] = [refs.slice(0, 300), refs.slice(300)];
  expect(clicks.puncture([...gone, gone[0]!])).toBe(new Set(gone).size);
  clicks.refresh();
  for (const ref of gone) expect(clicks.at(ref)).toBeUndefined();
  const left = kept.filter((ref) => !gone.includes(ref));
  expect(left.map((ref) => clicks.at(ref))).toEqual(left.map((ref) => keys[refs.indexOf(ref)]));
  expect(clicks.puncture(gone)).toBe(0);
});

test("where leaves were punctured, an address gets one of those that are left", () => {
  using world = openKeys();
  using file = openFile(world);
  const under = (root: string) => file.under(root).map(([ref, key]) => [`${ref}/a`, key] as const);
  const clicks = createClickKeys({ ...file, under });
  const leaves = Array.from({ length: 50 }, (_, n) => clicks.of(`10.0.0.${n}`, NOW).ref);
  for (const leaf of leaves) expect(leaf).toMatch(/\/a[0-9a-f]{5}$/);
  expect(new Set(leaves).size).toBe(50);
});

test("a day whose keys another process deletes just then gets another one", () => {
  using world = openKeys();
  using file = openFile(world);
  let deletions = 1;
  const under = (root: string) => {
    if (deletions-- > 0) file.remove(root);
    return file.under(root);
  };
  const clicks = createClickKeys({ ...file, under });
  const { ref } = clicks.of("203.0.113.7", NOW);
  expect(clicks.at(ref)).toBeDefined();
});
