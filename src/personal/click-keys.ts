import { hash, randomBytes } from "node:crypto";
import type { SealingKey } from "../../events/sealing.ts";
import { derived, keyAt, LEAF_DIGITS, punctured, textOf, wayTo, type Way } from "./key-tree.ts";
import { dayOf, dayRef } from "./day-keys.ts";
import type { KeysFile } from "./keys-file.ts";

/** Keys of clicks: a tree for each day, and a leaf of it for each address. */
export interface ClickKeys {
  of(ip: string | undefined, now: number): SealingKey;
  /** The key of that ref; undefined: it is gone. */
  at(ref: string): Uint8Array | undefined;
  /** Makes sure that the keys of these refs can never be derived again. Answers of how many they could be before. */
  puncture(refs: readonly string[]): number;
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
  let salt = newSalt();

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

  /** A leaf of its own for each address, and another one where that was punctured. */
  const pick = (ip: string): SealingKey => {
    for (let attempt = 0; ; attempt++) {
      // Deleted by another process just now: the day gets another one.
      if (trees.isEmpty(today.ref)) today.ref = dayRef(file, "click", today.day);
      const leaf = leafOf(salt, ip, attempt);
      const way = trees.way(today.ref, leaf);
      if (way !== undefined) return { prefix: `${file.id}:${today.ref}/${leaf}:`, key: textOf(way) };
    }
  };

  return {
    at,
    of(ip = "", now) {
      const day = dayOf(now);
      if (today.day !== day) {
        today = { day, ref: dayRef(file, "click", day) };
        addresses.clear();
      }
      const known = addresses.get(ip);
      if (known !== undefined) return known;
      if (addresses.size >= ADDRESSES_MAX) addresses.clear();
      const leaf = pick(ip);
      addresses.set(ip, leaf);
      return leaf;
    },
    puncture: (refs) =>
      file.change(() => {
        const byRoot = Map.groupBy(refs, (ref) => split(ref)[0] ?? "");
        return [...byRoot].reduce((count, [root, ofRoot]) => count + punctureTree(file, root, ofRoot), 0);
      }),
    refresh() {
      trees.clear();
      leaves.clear();
      today = { day: "", ref: "" };
      salt = newSalt();
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
 * Which leaf an address has is decided with a salt that no file holds: nobody can try out later which address a leaf
 * belonged to. After a restart an address has another leaf; who is erased is found by opening their clicks.
 */
function newSalt(): string {
  return randomBytes(32).toString("base64");
}

function leafOf(salt: string, ip: string, attempt: number): string {
  return hash("sha256", `${salt} ${attempt} ${ip}`).slice(0, LEAF_DIGITS);
}

/** Punctures a tree at all of these refs, and writes what is left of it once. */
function punctureTree(file: KeysFile, root: string, refs: readonly string[]): number {
  const nodes = loadTree(file, root);
  const stored = new Set(nodes.keys());
  let count = 0;
  for (const ref of refs) {
    const cut = punctured(nodes, split(ref)[1] ?? "");
    if (cut === undefined) continue;
    count++;
    nodes.delete(cut.cut);
    for (const [place, key] of cut.kept) nodes.set(place, key);
  }
  for (const place of stored) if (!nodes.has(place)) file.remove(nodeRef(root, place));
  for (const [place, key] of nodes) if (!stored.has(place)) file.put(nodeRef(root, place), key);
  return count;
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
