import { randomUUID } from "node:crypto";
import { derived, keyAt, LEAF_DIGITS, punctured, wayTo, type Way } from "./key-tree.ts";
import { dayOf, dayRef } from "./day-keys.ts";
import type { KeysFile } from "./keys-file.ts";

/** A key and what names it in a box. */
export interface NamedKey {
  readonly ref: string;
  readonly key: Uint8Array;
}

/** A leaf to seal with. */
export interface NamedLeaf {
  readonly ref: string;
  readonly way: Way;
}

/** Keys of clicks: a tree for each day, and a leaf of it for each address. */
export interface ClickKeys {
  of(ip: string | undefined, now: number): NamedLeaf;
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
  const addresses = new Map<string, NamedLeaf>();
  let today = { day: "", ref: "" };

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

  /** Any leaf that was not punctured. */
  const pick = (): NamedLeaf => {
    for (;;) {
      const leaf = anyLeaf();
      const way = trees.way(today.ref, leaf);
      if (way !== undefined) return { ref: `${today.ref}/${leaf}`, way };
    }
  };

  return {
    at,
    of(ip = "", now) {
      const day = dayOf(now);
      // A tree without a node was deleted while it was held.
      if (today.day !== day || trees.isEmpty(today.ref)) {
        today = { day, ref: dayRef(file, "click", day) };
        addresses.clear();
      }
      const known = addresses.get(ip);
      if (known !== undefined) return known;
      if (addresses.size >= ADDRESSES_MAX) addresses.clear();
      const named = pick();
      addresses.set(ip, named);
      return named;
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
      addresses.clear();
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
 * Which leaf an address has is left to chance, and no file holds it: nobody can try out later which address a leaf
 * belonged to. After a restart an address has another leaf; who is erased is found by opening their clicks.
 */
function anyLeaf(): string {
  return randomUUID().slice(0, LEAF_DIGITS);
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
