import { toDay } from "../../projections/time.ts";
import { newDayRef } from "./day-keys.ts";
import { newKey, type KeyChanges, type KeyStore, type NamedKey, splitRef } from "./key-store.ts";
import { hash } from "node:crypto";
import { KEY_BYTES } from "../vault/derive-keys.ts";

/** A leaf is named by so many hex digits: a day has 16 million. */
export const LEAF_DIGITS = 6;

const DIGITS = Array.from("0123456789abcdef");

/**
 * Keys of a tree by their place in it: the root's is "", its children's are "0" to "f". A node's key and a digit, hashed,
 * are the child's key. So from a node's key all keys below it follow, and no others. To forget a leaf, the node
 * above it is replaced by those beside the way down to the leaf (a punctured tree, after Goldreich, Goldwasser and
 * Micali, 1986):
 *
 *     before: ""          after forgetting "4f": 0 1 2 3   5 … f   40 41 … 4e
 */
export type Tree = ReadonlyMap<string, Uint8Array>;

/** The key at `place`; undefined when no node above it is left. */
export function keyAt(tree: Tree, place: string): Uint8Array | undefined {
  const above = nodeAbove(tree, place);
  let key = above === undefined ? undefined : tree.get(above);
  for (let at = above?.length ?? 0; key !== undefined && at < place.length; at++)
    key = deriveChild(key, place.charAt(at));
  return key;
}

/** The same tree, but for `leaf`, which cannot be derived any more; undefined: it could not be before. */
export function punctured(tree: Tree, leaf: string): Tree | undefined {
  const cut = nodeAbove(tree, leaf);
  if (cut === undefined) return undefined;
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

/** The place of the node that the key at `place` is derived from. */
function nodeAbove(tree: Tree, place: string): string | undefined {
  for (let digits = place.length; digits >= 0; digits--) {
    if (tree.has(place.slice(0, digits))) return place.slice(0, digits);
  }
  return undefined;
}

/** What is hashed; always the same one, since making an array costs as much as the hash. */
const keyAndDigit = Buffer.alloc(KEY_BYTES + 1);

/** A key and a digit are always as long, so that a plain hash makes keys of them that disclose nothing of each other. */
export function deriveChild(key: Uint8Array, digit: string): Uint8Array {
  keyAndDigit.set(key);
  keyAndDigit.write(digit, KEY_BYTES);
  return hash("sha256", keyAndDigit, "buffer");
}

/**
 * Keys of clicks, so that one address of a day can be forgotten. Each process makes one stored key a day, the root of a
 * tree, and gives each address a leaf of it, which the ciphertext names: `c2026-11-21-1a2b3c4d/0a4f31`. Leaves are handed
 * out in turn, and which address has which is held in memory only. So no durable index maps an address to its
 * clicks; forgetting one scans and decrypts them. Only this process hands out leaves of its tree, so no two addresses
 * share one. An address that was dropped from memory gets another leaf.
 *
 * Nothing is stored for a click or an address, so intake costs no second fsync; nor can a key be found by trying out
 * addresses, as it could if it were derived from them.
 */
export type ClickKeys = ReturnType<typeof createClickKeys>;

const LEAVES = 16 ** LEAF_DIGITS;

/** Addresses of today held at once with their leaves: with many more, holding costs more than a new leaf does. */
const ADDRESSES_MAX = 4_096;

export function createClickKeys(keys: KeyStore) {
  /** Those of today that came last, in two halves: when one is full, the older one is dropped. */
  let [young, old] = [new Map<string, NamedKey>(), new Map<string, NamedKey>()];
  let today = { day: "", root: "", nextLeaf: LEAVES };
  /** What is left of today's; undefined: it has to be fetched. */
  let tree: Tree | undefined;
  let keyIn = createLeafKeys();
  let preparing: Promise<void> | undefined;

  const newLeaf = (of: Tree): NamedKey | undefined => {
    while (today.nextLeaf < LEAVES) {
      const leaf = (today.nextLeaf++).toString(16).padStart(LEAF_DIGITS, "0");
      const key = keyIn(of, leaf);
      if (key !== undefined) return { ref: `${today.root}/${leaf}`, key };
    }
    return undefined;
  };
  /** In the younger half: those that come often stay. */
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
    /** The key of an address; undefined: nothing can be handed out before `prepare`. */
    of(ip: string | undefined = "", now: number): NamedKey | undefined {
      if (tree === undefined || today.day !== toDay(now)) return undefined;
      const known = young.get(ip);
      if (known !== undefined) return known;
      const leaf = old.get(ip) ?? newLeaf(tree);
      return leaf && held(ip, leaf);
    },
    /** Makes the tree of the day, or fetches what is left of it. */
    async prepare(now: number): Promise<void> {
      // All who wait get the same tree.
      preparing ??= prepare(toDay(now)).finally(() => (preparing = undefined));
      await preparing;
    },
    /** Keys may have been deleted: no address keeps its leaf. */
    refresh: drop,
  };
}

/** The keys of leaves, each of which is mostly asked for after its neighbour. */
export function createLeafKeys(): (tree: Tree, leaf: string) => Uint8Array | undefined {
  let parent: { readonly of: Tree; readonly place: string; readonly key: Uint8Array | undefined } | undefined;
  return (tree, leaf) => {
    const above = leaf.slice(0, -1);
    if (parent?.of !== tree || parent.place !== above) parent = { of: tree, place: above, key: keyAt(tree, above) };
    // Beside a punctured leaf some have keys of their own.
    return parent.key === undefined ? keyAt(tree, leaf) : deriveChild(parent.key, leaf.slice(-1));
  };
}

/** What is left of a tree; nothing: it is gone. */
export async function fetchTree(keys: Pick<KeyStore, "under">, root: string): Promise<Tree> {
  const found = await keys.under(root);
  return new Map([...found].flatMap(([ref, key]) => (key === "gone" ? [] : [[splitRef(ref)[1], key] as const])));
}

/** Makes sure that the keys of these refs can never be derived again. Answers of how many they could be before. */
export async function puncture(keys: KeyChanges, refs: readonly string[]): Promise<number> {
  let count = 0;
  for (const [root, ofRoot] of Map.groupBy(refs, (ref) => splitRef(ref)[0])) {
    count += await punctureTree(keys, root, ofRoot);
  }
  return count;
}

/** Punctures a tree at all of these refs, and writes what is left of it once. */
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
