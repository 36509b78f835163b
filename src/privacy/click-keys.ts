import { toDay } from "../../projections/parse-log-times.ts";
import { newDayRef } from "./daily-encryption-keys.ts";
import { newKey, type KeyChanges, type KeyStore, type NamedKey, splitRef } from "./key-store.ts";
import { hash } from "node:crypto";
import { KEY_BYTES } from "../vault/derive-keys.ts";

/** Number of hex digits that name a leaf of a day's key tree, which has 16 million leaves. */
export const LEAF_DIGITS = 6;

const DIGITS = Array.from("0123456789abcdef");

/**
 * Tree of keys for the clicks of a day: keys by the place of their node. The root's place is "", its children's are "0"
 * to "f". A child's key is the hash of its parent's key and its digit, so a key gives all keys below it and no others.
 */
export type Tree = ReadonlyMap<string, Uint8Array>;

/**
 * Returns the key of the tree's node at `place`. Undefined if the tree has neither a key for that node nor one for a
 * node above it, because these keys were deleted.
 */
export function keyAt(tree: Tree, place: string): Uint8Array | undefined {
  const above = nodeAbove(tree, place);
  let key = above === undefined ? undefined : tree.get(above);
  for (let at = above?.length ?? 0; key !== undefined && at < place.length; at++)
    key = deriveChild(key, place.charAt(at));
  return key;
}

/**
 * Returns the tree without `leaf`, whose key can never be derived again; undefined if the leaf was gone. The siblings
 * on the way down to the leaf replace the node above it (a punctured tree, after Goldreich, Goldwasser and Micali,
 * 1986).
 */
export function punctured(tree: Tree, leaf: string): Tree | undefined {
  const cut = nodeAbove(tree, leaf);
  if (cut === undefined) return undefined;
  /**
   * Nodes that are left in the tree: without the leaf "4f", for example, the root "" becomes 0 1 2 3 5 … f 40 41 … 4e.
   */
  const kept = new Map(tree);
  kept.delete(cut);
  for (let digits = cut.length; digits < leaf.length; digits++) {
    const parent = leaf.slice(0, digits);
    for (const digit of DIGITS) {
      const key = digit === leaf.charAt(digits) ? undefined : keyAt(tree, parent + digit);
      if (key !== undefined) kept.set(parent + digit, key);
    }
  }
  return kept;
}

/** Returns the place of the node in the tree from which the key at `place` is derived; undefined if none is left. */
function nodeAbove(tree: Tree, place: string): string | undefined {
  for (let digits = place.length; digits >= 0; digits--) {
    if (tree.has(place.slice(0, digits))) return place.slice(0, digits);
  }
  return undefined;
}

/** Input of the hash that derives a child's key. Reused, since making an array costs as much as the hash. */
const keyAndDigit = Buffer.alloc(KEY_BYTES + 1);

/**
 * Derives a child's key in the tree: the hash of its parent's key and its digit. Their lengths are fixed, so a plain
 * hash makes keys that disclose nothing about each other.
 */
export function deriveChild(key: Uint8Array, digit: string): Uint8Array {
  keyAndDigit.set(key);
  keyAndDigit.write(digit, KEY_BYTES);
  return hash("sha256", keyAndDigit, "buffer");
}

/**
 * Encryption keys of clicks, by which one client address of a day can be forgotten. Each process stores the root of one
 * key tree a day, and gives each address a leaf of it, which the ciphertext names: `c2026-11-21-1a2b3c4d/0a4f31`.
 */
export type ClickKeys = ReturnType<typeof createClickKeys>;

const LEAVES = 16 ** LEAF_DIGITS;

/**
 * Maximum number of today's client addresses whose key (a leaf of the day's key tree) is cached. If an address was
 * dropped from the cache, its next click gets another leaf, which costs less than caching many more addresses.
 */
const ADDRESSES_MAX = 4_096;

/**
 * Gives each client address a key for its clicks. Stores nothing for a click or an address, so recording a click waits
 * for the disk only once. Keys are not derived from addresses, so none can be found by trying out addresses.
 */
export function createClickKeys(keys: KeyStore) {
  /**
   * Cached keys of the client addresses that clicked last today, in two halves: when one is full, the older one is
   * dropped.
   */
  let [young, old] = [new Map<string, NamedKey>(), new Map<string, NamedKey>()];
  let today = { day: "", root: "", nextLeaf: LEAVES };
  /** Nodes that are left in today's key tree; undefined if they have to be fetched. */
  let tree: Tree | undefined;
  let keyIn = createLeafKeys();
  let preparing: Promise<void> | undefined;

  /**
   * Returns the next unused leaf of today's key tree. Only memory holds the leaf's address, so no durable index maps an
   * address to its clicks. No other process uses this tree, so no two addresses share a leaf.
   */
  const newLeaf = (of: Tree): NamedKey | undefined => {
    while (today.nextLeaf < LEAVES) {
      const leaf = (today.nextLeaf++).toString(16).padStart(LEAF_DIGITS, "0");
      const key = keyIn(of, leaf);
      if (key !== undefined) return { ref: `${today.root}/${leaf}`, key };
    }
    return undefined;
  };
  /** Puts the address into the younger half of the cache, so that frequent addresses stay. */
  const held = (ip: string, leaf: NamedKey): NamedKey => {
    if (young.size >= ADDRESSES_MAX / 2) [old, young] = [young, new Map()];
    young.set(ip, leaf);
    return leaf;
  };
  const drop = (): void => {
    tree = undefined;
    [young, old] = [new Map(), new Map()];
    keyIn = createLeafKeys();
  };
  const prepare = async (day: string): Promise<void> => {
    const asOf = keyIn;
    const isToday = today.day === day && today.nextLeaf < LEAVES;
    const left = isToday ? await fetchTree(keys, today.root) : undefined;
    if (left !== undefined && left.size > 0) {
      if (asOf === keyIn) tree = left;
      return;
    }
    const root = newDayRef("click", day);
    const key = newKey();
    await keys.change((within) => within.put(root, key));
    drop();
    today = { day, root, nextLeaf: 0 };
    tree = new Map([["", key]]);
  };

  return {
    /** Returns the key for the clicks of an address; undefined if `prepare` has to be called first. */
    of(ip: string | undefined = "", now: number): NamedKey | undefined {
      if (tree === undefined || today.day !== toDay(now)) return undefined;
      const known = young.get(ip);
      if (known !== undefined) return known;
      const leaf = old.get(ip) ?? newLeaf(tree);
      return leaf && held(ip, leaf);
    },
    /** Creates the key tree of the day, or fetches what is left of it. */
    async prepare(now: number): Promise<void> {
      // Callers that wait at the same time get the same tree.
      preparing ??= prepare(toDay(now)).finally(() => (preparing = undefined));
      await preparing;
    },
    /**
     * Drops all cached keys for clicks, and the day's tree from which they were derived, so each address gets another
     * key at its next click. The keyring calls this when keys may have been deleted.
     */
    refresh: drop,
  };
}

/**
 * Returns a function that derives the keys of leaves from a tree. It is fast for neighbours, since a leaf is mostly
 * requested after its neighbour.
 */
export function createLeafKeys(): (tree: Tree, leaf: string) => Uint8Array | undefined {
  let parent: { readonly of: Tree; readonly place: string; readonly key: Uint8Array | undefined } | undefined;
  return (tree, leaf) => {
    const above = leaf.slice(0, -1);
    if (parent?.of !== tree || parent.place !== above) parent = { of: tree, place: above, key: keyAt(tree, above) };
    // If a leaf below the same parent was deleted, the tree no longer has the parent's key. It then stores the keys of
    // the other leaves there as nodes.
    return parent.key === undefined ? keyAt(tree, leaf) : deriveChild(parent.key, leaf.slice(-1));
  };
}

/** Fetches the nodes that are left in a key tree; empty if the tree was deleted. */
export async function fetchTree(keys: { readonly under: KeyStore["under"] }, root: string): Promise<Tree> {
  const found = await keys.under(root);
  return new Map([...found].flatMap(([ref, key]) => (key === "gone" ? [] : [[splitRef(ref)[1], key] as const])));
}

/**
 * Makes it impossible to derive the click keys of these refs (names of keys) again. Returns how many of the keys
 * existed before.
 */
export async function puncture(keys: KeyChanges, refs: readonly string[]): Promise<number> {
  let count = 0;
  for (const [root, ofRoot] of Map.groupBy(refs, (ref) => splitRef(ref)[0])) {
    count += await punctureTree(keys, root, ofRoot);
  }
  return count;
}

/**
 * Makes the click keys of these refs in one key tree impossible to derive: deletes the tree's nodes above them, and
 * stores nodes for the other keys. Returns how many of the keys existed before.
 */
async function punctureTree(keys: KeyChanges, root: string, refs: readonly string[]): Promise<number> {
  const stored = await fetchTree(keys, root);
  let tree = stored;
  let count = 0;
  for (const ref of refs) {
    const left = punctured(tree, splitRef(ref)[1]);
    if (left === undefined) continue;
    count++;
    tree = left;
  }
  const removed = [...stored.keys()].filter((place) => !tree.has(place));
  const added = [...tree].filter(([place]) => !stored.has(place));
  await Promise.all([
    ...removed.map((place) => keys.remove(refAt(root, place))),
    keys.putAll(added.map(([place, key]) => [refAt(root, place), key])),
  ]);
  return count;
}

function refAt(root: string, place: string): string {
  return place === "" ? root : `${root}/${place}`;
}
