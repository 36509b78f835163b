import { hash } from "node:crypto";
import { KEY_BYTES } from "../vault/key.ts";

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
