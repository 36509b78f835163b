import { randomUUID } from "node:crypto";
import type { SealingKey } from "../../events/sealing.ts";
import { derived, DIGITS, keyAt, LEAF_DIGITS, punctured, textOf, wayTo, type Way } from "./key-tree.ts";
import { dayOf, dayRef } from "./day-keys.ts";
import type { KeysFile } from "./keys-file.ts";

/** A key and what names it in a box. */
export interface NamedKey {
  readonly ref: string;
  readonly key: Uint8Array;
}

/** Keys of clicks: a tree for each day, and a leaf of it for each address. */
export interface ClickKeys {
  of(ip: string | undefined, now: number): SealingKey;
  /** The key of that ref; undefined: it is gone. */
  at(ref: string): Uint8Array | undefined;
  /** Makes sure that the key of that ref can never be derived again. False: it could not be before. */
  puncture(ref: string): boolean;
  refresh(): void;
}

/** Trees held at once: a reader comes from day to day. */
const TREES_MAX = 4;

/** Leaves held at once for reading. */
const LEAVES_MAX = 8_192;

/** Addresses of today held at once with their leaves, some 300 bytes each. */
const ADDRESSES_MAX = 32_768;

/** Down to this depth the keys of a tree are held, so that a leaf is at most three steps away. */
const HELD_DIGITS = 3;

export function createClickKeys(file: KeysFile): ClickKeys {
  const trees = createTrees(file);
  const leaves = new Map<string, Uint8Array>();
  /** Of today. */
  const addresses = new Map<string, SealingKey>();
  let today = { day: "", ref: "" };
  let leavesLeft: SealingKey[] = [];

  const at = (ref: string): Uint8Array | undefined => {
    const held = leaves.get(ref);
    if (held !== undefined) return held;
    const [root = "", leaf = ""] = split(ref);
    const way = trees.way(root, leaf);
    if (way === undefined) return undefined;
    const key = derived(way);
    if (leaves.size >= LEAVES_MAX) leaves.clear();
    leaves.set(ref, key);
    return key;
  };

  /** The leaves of any node below which nothing was punctured: they share all hashes but the last. */
  const someLeaves = (): SealingKey[] => {
    for (;;) {
      const place = anyPlace(LEAF_DIGITS - 1);
      const way = trees.way(today.ref, place);
      if (way === undefined) continue;
      const key = derived(way);
      return DIGITS.map((digit) => ({
        prefix: `${file.id}:${today.ref}/${place}${digit}:`,
        key: textOf({ key, below: digit }),
      }));
    }
  };

  const forgetToday = (): void => {
    addresses.clear();
    leavesLeft = [];
  };

  return {
    at,
    of(ip = "", now) {
      const day = dayOf(now);
      // A tree without a node was deleted while it was held.
      if (today.day !== day || trees.isEmpty(today.ref)) {
        today = { day, ref: dayRef(file, "click", day) };
        forgetToday();
      }
      const known = addresses.get(ip);
      if (known !== undefined) return known;
      if (addresses.size >= ADDRESSES_MAX) addresses.clear();
      if (leavesLeft.length === 0) leavesLeft = someLeaves();
      const leaf = leavesLeft.pop()!;
      addresses.set(ip, leaf);
      return leaf;
    },
    puncture(ref) {
      const [root = "", leaf = ""] = split(ref);
      return file.change(() => {
        const cut = punctured(loadTree(file, root), leaf);
        if (cut === undefined) return false;
        file.remove(nodeRef(root, cut.cut));
        for (const [place, key] of cut.kept) file.put(nodeRef(root, place), key);
        return true;
      });
    },
    refresh() {
      trees.clear();
      leaves.clear();
      forgetToday();
      today = { day: "", ref: "" };
    },
  };
}

/** The trees of some days, as far as they were needed. */
function createTrees(file: KeysFile) {
  const trees = new Map<string, Map<string, Uint8Array>>();

  const treeOf = (root: string): Map<string, Uint8Array> => {
    const held = trees.get(root);
    if (held !== undefined) return held;
    if (trees.size >= TREES_MAX) trees.clear();
    const tree = loadTree(file, root);
    trees.set(root, tree);
    return tree;
  };

  return {
    clear: () => trees.clear(),
    isEmpty: (root: string): boolean => treeOf(root).size === 0,
    /** Undefined: the leaf cannot be derived any more. */
    way(root: string, leaf: string): Way | undefined {
      const tree = treeOf(root);
      const above = leaf.slice(0, HELD_DIGITS);
      const held = tree.get(above);
      if (held !== undefined) return { key: held, below: leaf.slice(HELD_DIGITS) };
      const key = keyAt(tree, above);
      // Below a punctured node some leaves have keys of their own.
      if (key === undefined) return wayTo(tree, leaf);
      tree.set(above, key);
      return { key, below: leaf.slice(HELD_DIGITS) };
    },
  };
}

/**
 * Random digits. Which leaf an address has is left to chance, and no file holds it: nobody can try out later which address a leaf
 * belonged to. After a restart an address has another leaf; who is erased is found by opening their clicks.
 */
function anyPlace(digits: number): string {
  return randomUUID().slice(0, digits);
}

function loadTree(file: KeysFile, root: string): Map<string, Uint8Array> {
  return new Map(file.under(root).map(([ref, key]) => [split(ref)[1] ?? "", key]));
}

function split(ref: string): readonly string[] {
  return ref.split("/", 2);
}

function nodeRef(root: string, place: string): string {
  return place === "" ? root : `${root}/${place}`;
}
