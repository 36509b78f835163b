import type { Awaitable } from "eventstore-lite";
import { createLeafKeys, fetchTree, keyAt, type Tree } from "./click-keys.ts";
import { classifyRef, type FoundKey, type StoredKeys, splitRef } from "./key-store.ts";

/**
 * Maximum number of cached encryption keys: one for each recipient or each day. A fold that needs more of them fetches
 * dropped keys again from the key store.
 */
const KEYS_MAX = 10_000;

/**
 * Maximum number of key trees of clicks that are cached at once: each process makes one a day, and a reader moves from
 * day to day.
 */
const TREES_MAX = 32;

/** Cached keys by their ref (name), and key trees of clicks by the ref of their root. */
interface Entries {
  readonly keys: Map<string, FoundKey>;
  readonly trees: Map<string, Tree>;
}

/** Caches the keys that open ciphertexts, and fetches many at once from the store. */
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
      // Keys were deleted while these were fetched, so the fetched keys may be outdated and are fetched again.
      if (asOf !== cached) continue;
      const found = refs.map((ref) => keyIn(fetched, ref) ?? keyIn(cached, ref));
      keep(cached.keys, fetched.keys, KEYS_MAX);
      keep(cached.trees, fetched.trees, TREES_MAX);
      return found;
    }
  };
  return {
    /**
     * Returns the keys of these refs (names of keys), in the same order; undefined for a key that is gone. Returns no
     * promise if all are cached; rejects with what the store throws.
     */
    find: (refs: readonly string[]): Awaitable<readonly (Uint8Array | undefined)[]> =>
      refs.every(isCached) ? refs.map((ref) => keyIn(cached, ref)) : fetch(refs),
    /**
     * Drops the cached keys, and makes fetches in progress start again. The keyring calls this when keys may have been
     * deleted.
     */
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

/** Returns those of the refs (names of keys) whose key in the store still opens some data, or may encrypt more. */
export async function findUsable(keys: StoredKeys, refs: readonly string[]): Promise<readonly string[]> {
  const found = await fetchAll(keys, refs);
  return refs.filter((ref) => {
    const [root, leaf] = splitRef(ref);
    if (classifyRef(ref) === "click") return keyAt(found.trees.get(root) ?? new Map(), leaf) !== undefined;
    return classifyRef(ref) === "person" ? found.keys.get(ref) !== "gone" : found.keys.has(ref);
  });
}
