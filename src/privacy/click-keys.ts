import { randomInt } from "node:crypto";
import { dayOf, dayRef } from "./day-keys.ts";
import type { KeyStore, NamedKey } from "./key-store.ts";
import { childOf, keyAt, LEAF_DIGITS, punctured, type Tree } from "./key-tree.ts";

/**
 * Keys of clicks, so that one address of a day can be forgotten. A day has one stored key, the root of a tree, and each
 * address has a leaf of it, which the ciphertext names: `c2026-11-21-1a2b3c4d/0a4f31`. Leaves are handed out in turn, and
 * which address has which is held in memory only: nothing that lasts leads from an address to its clicks, and who is
 * forgotten is found by opening clicks. No two addresses share a leaf, unless the service was started anew on that day;
 * an address that is not held any more gets another one.
 *
 * Nothing is stored for a click or an address, so intake costs no second fsync; nor can a key be found by trying out
 * addresses, as it could if it were derived from them.
 */
export interface ClickKeys {
  of(ip: string | undefined, now: number): NamedKey;
  /** The key of that ref; undefined: it is gone. */
  at(ref: string): Uint8Array | undefined;
  /** Makes sure that the keys of these refs can never be derived again. Answers of how many they could be before. */
  puncture(refs: readonly string[]): number;
  refresh(): void;
}

const LEAVES = 16 ** LEAF_DIGITS;

/** Trees held at once: a reader comes from day to day. */
const TREES_MAX = 4;

/** Addresses of today held at once with their leaves: with many more, holding costs more than a new leaf does. */
const ADDRESSES_MAX = 4_096;

export function createClickKeys(keys: KeyStore): ClickKeys {
  const trees = new Map<string, Tree>();
  /** Those of today that came last, in two halves: when one is full, the older one is dropped. */
  let [young, old] = [new Map<string, NamedKey>(), new Map<string, NamedKey>()];
  let today = { day: "", root: "" };
  // Where they begin is left to chance, so that after a start addresses hardly ever share the leaves of before.
  let nextLeaf = randomInt(LEAVES);
  /** Of the leaf that was asked for last: its neighbours are asked for next. */
  let parent: { readonly ref: string; readonly key: Uint8Array | undefined } = { ref: "", key: undefined };

  const treeOf = (root: string): Tree => {
    let tree = trees.get(root);
    if (tree !== undefined) return tree;
    if (trees.size >= TREES_MAX) trees.clear();
    tree = loadTree(keys, root);
    trees.set(root, tree);
    return tree;
  };
  const at = (ref: string): Uint8Array | undefined => {
    const [root, leaf] = partsOf(ref);
    const above = ref.slice(0, -1);
    if (parent.ref !== above) parent = { ref: above, key: keyAt(treeOf(root), leaf.slice(0, -1)) };
    // Beside a punctured leaf some have keys of their own.
    return parent.key === undefined ? keyAt(treeOf(root), leaf) : childOf(parent.key, ref.slice(-1));
  };
  const newLeaf = (): NamedKey => {
    for (;;) {
      // Deleted by another process just now: the day gets another one.
      if (treeOf(today.root).size === 0) today.root = dayRef(keys, "click", today.day);
      const leaf = (nextLeaf++ % LEAVES).toString(16).padStart(LEAF_DIGITS, "0");
      const ref = `${today.root}/${leaf}`;
      const key = at(ref);
      if (key !== undefined) return { ref, key };
      nextLeaf = randomInt(LEAVES);
    }
  };

  /** In the younger half: those that come often stay. */
  const held = (ip: string, leaf: NamedKey): NamedKey => {
    if (young.size >= ADDRESSES_MAX / 2) [old, young] = [young, new Map()];
    young.set(ip, leaf);
    return leaf;
  };

  return {
    at,
    of(ip = "", now) {
      const day = dayOf(now);
      if (today.day !== day) {
        today = { day, root: dayRef(keys, "click", day) };
        [young, old] = [new Map(), new Map()];
      }
      return young.get(ip) ?? held(ip, old.get(ip) ?? newLeaf());
    },
    puncture: (refs) =>
      keys.change(() => {
        const byRoot = Map.groupBy(refs, (ref) => partsOf(ref)[0]);
        return [...byRoot].reduce((count, [root, ofRoot]) => count + punctureTree(keys, root, ofRoot), 0);
      }),
    refresh() {
      trees.clear();
      parent = { ref: "", key: undefined };
      today = { day: "", root: "" };
    },
  };
}

/** Punctures a tree at all of these refs, and writes what is left of it once. */
function punctureTree(keys: KeyStore, root: string, refs: readonly string[]): number {
  const stored = loadTree(keys, root);
  let tree = stored;
  let count = 0;
  for (const ref of refs) {
    const left = punctured(tree, partsOf(ref)[1]);
    if (left === undefined) continue;
    count++;
    tree = left;
  }
  for (const place of stored.keys()) if (!tree.has(place)) keys.remove(refAt(root, place));
  for (const [place, key] of tree) if (!stored.has(place)) keys.put(refAt(root, place), key);
  return count;
}

function loadTree(keys: KeyStore, root: string): Tree {
  return new Map(keys.under(root).map(([ref, key]) => [partsOf(ref)[1], key]));
}

function partsOf(ref: string): readonly [root: string, place: string] {
  const [root = "", place = ""] = ref.split("/", 2);
  return [root, place];
}

function refAt(root: string, place: string): string {
  return place === "" ? root : `${root}/${place}`;
}
