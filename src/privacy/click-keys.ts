import { randomInt } from "node:crypto";
import type { EncryptionKey } from "../../events/encryption.ts";
import { derived, DIGITS, isWalked, keyAt, LEAF_DIGITS, punctured, walked, wayTo, type Way } from "./key-tree.ts";
import { dayOf, dayRef } from "./day-keys.ts";
import type { KeysFile } from "./keys-file.ts";

/**
 * Keys of clicks: a tree for each day, and a leaf of it for each address. Leaves are handed out in turn, since all of a
 * node share all hashes but the last, and nothing in a leaf tells whose it is. No two addresses share one, unless the
 * service was started anew on that day. An address that is not held any more gets another leaf: who is erased is found
 * by opening their clicks.
 */
export interface ClickKeys {
  of(ip: string | undefined, now: number): EncryptionKey;
  /** The key of that ref; undefined: it is gone. */
  at(ref: string): Uint8Array | undefined;
  /** Makes sure that the keys of these refs can never be derived again. Answers of how many they could be before. */
  puncture(refs: readonly string[]): number;
  refresh(): void;
}

/** What an address is sealed with. */
type Leaf = EncryptionKey & { readonly key: string };

/** A node above leaves, of which some were handed out. */
interface Node {
  /** How the prefixes of its leaves begin. */
  readonly prefix: string;
  /** In hex. */
  readonly key: string;
  leavesUsed: number;
}

const NODE_DIGITS = LEAF_DIGITS - 1;
const NODES = DIGITS.length ** NODE_DIGITS;

/** Trees held at once: a reader comes from day to day. */
const TREES_MAX = 4;

/** Leaves held at once for reading. */
const LEAVES_MAX = 8_192;

/** Addresses of today held at once with their leaves: with many more, holding costs more than a new leaf does. */
const ADDRESSES_MAX = 4_096;

/** Down to this depth the keys of a tree are held, so that a leaf is at most three steps away. */
const HELD_DIGITS = 3;

export function createClickKeys(file: KeysFile): ClickKeys {
  const trees = createTrees(file);
  const leaves = new Map<string, Uint8Array>();
  /** Of today. */
  const addresses = createAddresses();
  let today = { day: "", ref: "" };
  /** Whose leaves are handed out now. */
  let node: Node | undefined;
  // Where it begins is left to chance, so that after a start addresses hardly ever share the leaves of before.
  let nodesUsed = randomInt(NODES);

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

  /** The next node below which nothing was punctured. */
  const nextNode = (): Node => {
    for (;;) {
      // Deleted by another process just now: the day gets another one.
      if (trees.isEmpty(today.ref)) today.ref = dayRef(file, "click", today.day);
      const place = placeOf(nodesUsed++);
      const way = trees.way(today.ref, place);
      if (way !== undefined)
        return { prefix: `${file.id}:${today.ref}/${place}`, key: derived(way).toHex(), leavesUsed: 0 };
    }
  };

  const nextLeaf = (): Leaf => {
    if (node === undefined || node.leavesUsed === DIGITS.length) node = nextNode();
    const digit = DIGITS[node.leavesUsed++] ?? "";
    return { prefix: `${node.prefix}${digit}:`, key: node.key + digit };
  };

  return {
    at,
    of(ip = "", now) {
      const day = dayOf(now);
      if (today.day !== day) {
        today = { day, ref: dayRef(file, "click", day) };
        node = undefined;
        addresses.clear();
      }
      const known = addresses.get(ip);
      if (known !== undefined && isWalked(known.key)) return known;
      // Most addresses come once: only one that comes again is worth its last hash here.
      const leaf = known === undefined ? nextLeaf() : { prefix: known.prefix, key: walked(known.key) };
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

/** The place of the `index`th node above the leaves; after the last one they begin anew. */
function placeOf(index: number): string {
  return (index % NODES).toString(16).padStart(NODE_DIGITS, "0");
}

/** Those that come often are held for the whole day: an address leaves only behind many others. */
function createAddresses() {
  let young = new Map<string, Leaf>();
  let old = new Map<string, Leaf>();
  const set = (ip: string, leaf: Leaf): void => {
    if (young.size >= ADDRESSES_MAX / 2) [old, young] = [young, new Map()];
    young.set(ip, leaf);
  };
  return {
    set,
    get(ip: string): Leaf | undefined {
      const known = young.get(ip);
      if (known !== undefined) return known;
      const before = old.get(ip);
      if (before !== undefined) set(ip, before);
      return before;
    },
    clear(): void {
      young.clear();
      old.clear();
    },
  };
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
