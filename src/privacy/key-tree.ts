import { hash } from "node:crypto";
import { KEY_BYTES } from "../vault/key.ts";

/** A leaf is named by so many hex digits: a day has 16 million. */
export const LEAF_DIGITS = 6;

export const DIGITS = Array.from("0123456789abcdef");

/**
 * Some keys of a tree by their place in it: the root's is "", its children's are "0" to "f". Whoever has a node's key can
 * derive all below it, and nothing else (Goldreich, Goldwasser and Micali, 1986).
 */
export type Nodes = ReadonlyMap<string, Uint8Array>;

/** A node's key, and the digits that lead from it down to another node: it takes little, and costs no hash. */
export interface Way {
  readonly key: Uint8Array;
  readonly below: string;
}

/** The way to `place`; undefined when no node above it is left. */
export function wayTo(nodes: Nodes, place: string): Way | undefined {
  for (let digits = place.length; digits >= 0; digits--) {
    const key = nodes.get(place.slice(0, digits));
    if (key !== undefined) return { key, below: place.slice(digits) };
  }
  return undefined;
}

/** The key at `place`; undefined when no node above it is left. */
export function keyAt(nodes: Nodes, place: string): Uint8Array | undefined {
  const way = wayTo(nodes, place);
  return way && derived(way);
}

/** What to keep instead of the node at `cut` so that `leaf` below it cannot be derived any more, but all else can. */
export function punctured(nodes: Nodes, leaf: string): { readonly cut: string; readonly kept: Nodes } | undefined {
  for (let digits = 0; digits <= leaf.length; digits++) {
    const cut = leaf.slice(0, digits);
    const key = nodes.get(cut);
    if (key !== undefined) return { cut, kept: new Map(siblingsOf(key, cut, leaf)) };
  }
  return undefined;
}

/** On each level below `cut` the children beside the way to the leaf. */
function* siblingsOf(key: Uint8Array, cut: string, leaf: string): Generator<[string, Uint8Array]> {
  let parent = key;
  for (let digits = cut.length; digits < leaf.length; digits++) {
    const way = leaf.slice(0, digits);
    for (const digit of DIGITS)
      if (digit !== leaf.charAt(digits)) yield [way + digit, derived({ key: parent, below: digit })];
    parent = derived({ key: parent, below: leaf.charAt(digits) });
  }
}

/** A key and a digit: always as long, so that a plain hash makes keys of them that tell nothing of each other. */
const step = Buffer.alloc(KEY_BYTES + 1);

const reached = step.subarray(0, KEY_BYTES);

function walk(below: string): void {
  for (const digit of below) {
    step.write(digit, KEY_BYTES);
    // Text costs the collector less than an array for each step.
    step.write(hash("sha256", step), 0, "hex");
  }
}

/** The key of the node at the end of a way. */
export function derived({ key, below }: Way): Uint8Array {
  if (below === "") return key;
  step.set(key);
  walk(below);
  return Buffer.from(reached);
}

const KEY_DIGITS = 2 * KEY_BYTES;

/** A way as text: the key in hex, and behind it the digits that lead down. */
export function textOf({ key, below }: Way): string {
  return key.toHex() + below;
}

/** Whether a way given as text has no step left. */
export function isWalked(way: string): boolean {
  return way.length === KEY_DIGITS;
}

/** The same way without steps. */
export function walked(way: string): string {
  return passingKey(way).toHex();
}

/** The key at the end of a way given as text; it holds until the next key is derived. */
export function passingKey(way: string): Uint8Array {
  if (step.write(way, 0, KEY_BYTES, "hex") !== KEY_BYTES) throw new RangeError("a key is cut short");
  walk(way.slice(KEY_DIGITS));
  return reached;
}
