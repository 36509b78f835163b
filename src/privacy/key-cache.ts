import type { Awaitable } from "eventstore-lite";
import { createLeafKeys, fetchTree, keyAt, type Tree } from "./click-keys.ts";
import { classifyRef, type FoundKey, type StoredKeys, splitRef } from "./key-store.ts";

/** Keys of people and days cached at once; a fold over more people asks again. */
const KEYS_MAX = 10_000;

/** Trees of clicks cached at once: each process makes one a day, and a reader comes from day to day. */
const TREES_MAX = 32;

/** By ref, and by the root of a tree. */
interface Entries {
  readonly keys: Map<string, FoundKey>;
  readonly trees: Map<string, Tree>;
}

/** The keys that ciphertexts are opened with: the store is asked for many at once, and some are cached. */
export function createKeyCache(keys: StoredKeys) {
  let cached: Entries = { keys: new Map(), trees: new Map() };
  const leafKey = createLeafKeys();
  const keyIn = ({ keys: known, trees }: Entries, ref: string): Uint8Array | undefined => {
    const [root, leaf] = splitRef(ref);
    const tree = trees.get(root);
    if (tree !== undefined) return leafKey(tree, leaf);
    const key = known.get(ref);
    return key === "gone" ? undefined : key;
  };
  const isCached = (ref: string): boolean =>
    classifyRef(ref) === "click" ? cached.trees.has(splitRef(ref)[0]) : cached.keys.has(ref);
  const fetch = async (refs: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> => {
    for (;;) {
      const asOf = cached;
      const missing = new Set(refs.filter((ref) => !isCached(ref)));
      const fetched = await fetchAll(keys, [...missing]);
      // Keys were deleted meanwhile: what was fetched may be of before.
      if (asOf !== cached) continue;
      const found = refs.map((ref) => keyIn(fetched, ref) ?? keyIn(cached, ref));
      keep(cached.keys, fetched.keys, KEYS_MAX);
      keep(cached.trees, fetched.trees, TREES_MAX);
      return found;
    }
  };
  return {
    /**
     * The keys of these refs, each in its place; undefined: it is gone. No promise where all are cached; rejects with
     * what the store throws.
     */
    find: (refs: readonly string[]): Awaitable<readonly (Uint8Array | undefined)[]> =>
      refs.every(isCached) ? refs.map((ref) => keyIn(cached, ref)) : fetch(refs),
    /** Keys may have been deleted: nothing is cached any more, nor is what was asked for before. */
    clear(): void {
      cached = { keys: new Map(), trees: new Map() };
    },
  };
}

async function fetchAll(keys: StoredKeys, refs: readonly string[]): Promise<Entries> {
  const { click = [], person = [], day = [] } = Object.groupBy(refs, classifyRef);
  const roots = [...new Set(click.map((ref) => splitRef(ref)[0]))];
  const [found, trees] = await Promise.all([
    keys.getAll([...person, ...day]),
    Promise.all(roots.map(async (root) => [root, await fetchTree(keys, root)] as const)),
  ]);
  return { keys: new Map(found), trees: new Map(trees) };
}

function keep<Value>(cached: Map<string, Value>, fetched: ReadonlyMap<string, Value>, max: number): void {
  if (cached.size + fetched.size > max) cached.clear();
  for (const [ref, value] of fetched) cached.set(ref, value);
}

/** Of these refs those whose key opens something, or may encrypt something yet; as the store has them. */
export async function findUsable(keys: StoredKeys, refs: readonly string[]): Promise<readonly string[]> {
  const found = await fetchAll(keys, refs);
  return refs.filter((ref) => {
    const [root, leaf] = splitRef(ref);
    if (classifyRef(ref) === "click") return keyAt(found.trees.get(root) ?? new Map(), leaf) !== undefined;
    return classifyRef(ref) === "person" ? found.keys.get(ref) !== "gone" : found.keys.has(ref);
  });
}
