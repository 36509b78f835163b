import { describe, expect, test } from "bun:test";
import type { EventStore } from "eventstore-lite";
import { ChainBroken } from "eventstore-lite/proof";
import { newEvents, refusalOf, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { createLogTree } from "../../src/proof/log-tree.ts";
import { createTree, foldHashes, hashLeaf, provesInclusion, TILE_HASHES } from "../../src/proof/merkle-tree.ts";
import { engines } from "../engines.ts";

/**
 * Number of events in the log: two full tiles of level 0 and a rest. A second tile of level 1 would need 65,536 events,
 * and shows nothing more.
 */
const EVENTS = 2 * TILE_HASHES + 17;

async function fill(store: EventStore, events = EVENTS): Promise<Uint8Array[]> {
  for (let left = events; left > 0; left -= 256) await store.append("a", newEvents(Math.min(left, 256)));
  const { position: to } = await store.head();
  return (await take(store.readCanonical({ from: 1, to }))).flat().map((event) => hashLeaf(event));
}

/**
 * Computes the root of the Merkle tree over these leaves, without a log and without stored tiles (blocks of hashes).
 */
function rootOf(leaves: readonly Uint8Array[]): Promise<Uint8Array> {
  const read = async (level: number, index: number, width: number): Promise<Uint8Array> => {
    const children = Array.from({ length: width }, (_, at) => index * TILE_HASHES + at);
    if (level === 0) return Buffer.concat(children.map((child) => leaves[child]!));
    const below = await Promise.all(children.map((child) => read(level - 1, child, TILE_HASHES)));
    return Buffer.concat(below.map(foldHashes));
  };
  return createTree(leaves.length, read).root();
}

/** Wraps a store so that it fails after this many saved snapshots, like a process that is killed. */
function dyingAfter(store: EventStore, saves: number): EventStore {
  let left = saves;
  const save: EventStore["snapshots"]["save"] = async (...snapshot) => {
    if ((left -= 1) < 0) throw new Error("killed");
    await store.snapshots.save(...snapshot);
  };
  return { ...store, snapshots: { ...store.snapshots, save } };
}

/** Returns the stored tiles of a log by their names. */
async function tilesOf(store: EventStore): Promise<Record<string, string>> {
  const tiles: Record<string, string> = {};
  for (const { name } of await store.snapshots.list("merkle"))
    tiles[name] = (await store.snapshots.load(name))?.state ?? "";
  return tiles;
}

describe.each(engines({ writerThread: false }))("the tree of a log on %s", (_, open) => {
  test("covers the canonical bytes, with and without stored tiles", async () => {
    await using store = await open();
    const leaves = await fill(store);
    const root = await rootOf(leaves);
    const tree = createLogTree(store);
    expect(await tree.at(EVENTS).root()).toEqual(root);
    expect(await tree.extend(EVENTS)).toBe(true);
    expect(Object.keys(await tilesOf(store)).toSorted()).toEqual(["merkle", "merkle/1/0"]);
    expect(await tree.at(EVENTS).root()).toEqual(root);
    expect(await tree.at(300).root()).toEqual(await rootOf(leaves.slice(0, 300)));
    for (const index of [0, 255, 256, EVENTS - 1]) {
      const proof = await tree.at(EVENTS).inclusion(index);
      expect(provesInclusion({ size: EVENTS, root }, index, leaves[index]!, proof)).toBe(true);
    }
  });

  test("reads full tiles instead of events", async () => {
    await using store = await open();
    await fill(store);
    let read = 0;
    const counted: EventStore = {
      ...store,
      readCanonical(query) {
        read += query.to - query.from + 1;
        return store.readCanonical(query);
      },
    };
    await createLogTree(counted).extend(EVENTS);
    read = 0;
    await createLogTree(counted).at(EVENTS).root();
    expect(read).toBe(EVENTS % TILE_HASHES);
    expect(await createLogTree(counted).extend(EVENTS)).toBe(true);
    expect(read).toBe(EVENTS % TILE_HASHES);
  });

  test("keeps full tiles in memory for all callers until they are forgotten", async () => {
    await using store = await open();
    const leaves = await fill(store);
    let read = 0;
    const counted: EventStore = {
      ...store,
      readCanonical(query) {
        read += query.to - query.from + 1;
        return store.readCanonical(query);
      },
    };
    const rest = EVENTS % TILE_HASHES;
    const root = await rootOf(leaves);
    const roots = await Promise.all([1, 2, 3].map(() => createLogTree(counted).at(EVENTS).root()));
    expect(roots).toEqual([root, root, root]);
    // The three calls of `root` share the full tiles (blocks of hashes), so the events below these are read once. Each
    // call reads and hashes the `rest` events after the last full tile.
    expect(read).toBe(EVENTS + 2 * rest);
    read = 0;
    const proof = await createLogTree(counted).at(EVENTS).inclusion(3);
    expect(provesInclusion({ size: EVENTS, root }, 3, leaves[3]!, proof)).toBe(true);
    expect(read).toBe(TILE_HASHES + rest);
    await fill(store);
    const all = (await take(store.readCanonical({ from: 1, to: 2 * EVENTS }))).flat().map((event) => hashLeaf(event));
    read = 0;
    expect(
      await createLogTree(counted)
        .at(2 * EVENTS)
        .root(),
    ).toEqual(await rootOf(all));
    expect(read).toBe(2 * EVENTS - 2 * TILE_HASHES);
    // Removing the stored tiles (blocks of the Merkle tree's hashes) also drops the tiles in memory.
    await createLogTree(counted).forget();
    read = 0;
    expect(await createLogTree(counted).at(EVENTS).root()).toEqual(root);
    expect(read).toBe(EVENTS);
  });

  test("is the same after a crash between any two writes", async () => {
    await using whole = await open();
    const root = await rootOf(await fill(whole));
    await createLogTree(whole).extend(EVENTS);
    const expected = await tilesOf(whole);
    for (let saves = 0; saves < 2; saves += 1) {
      await createLogTree(whole).forget();
      expect(await refusalOf(createLogTree(dyingAfter(whole, saves)).extend(EVENTS))).toEqual(new Error("killed"));
      expect(await createLogTree(whole).at(EVENTS).root()).toEqual(root);
      await createLogTree(whole).extend(EVENTS);
      expect(await tilesOf(whole)).toEqual(expected);
    }
  });

  test("does not use tiles of another history", async () => {
    await using other = await open();
    await fill(other);
    await createLogTree(other).extend(EVENTS);
    await using store = await open();
    const leaves = await fill(store);
    for (const [name, state] of Object.entries(await tilesOf(other)))
      await store.snapshots.save(name, { version: 1, position: 2 * TILE_HASHES, state });
    const tree = createLogTree(store);
    const root = await rootOf(leaves);
    expect(await tree.at(EVENTS).root()).toEqual(root);
    await tree.extend(EVENTS);
    expect(await tree.at(EVENTS).root()).toEqual(root);
    expect(await tilesOf(store)).not.toEqual(await tilesOf(other));
  });

  test("is not extended over events that contradict the chain", async () => {
    await using store = await open();
    await fill(store);
    const altered: EventStore = {
      ...store,
      async *readCanonical(query) {
        for await (const events of store.readCanonical(query))
          yield events.map((event) => (query.from === 1 ? event.with(event.length - 1, 7) : event));
      },
    };
    expect(await refusalOf(createLogTree(altered).extend(EVENTS))).toBeInstanceOf(ChainBroken);
    expect(await tilesOf(store)).toEqual({});
  });
});
