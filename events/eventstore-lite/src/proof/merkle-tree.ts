import { hash } from "node:crypto";
import { HASH_BYTES } from "../event-hash-chain.ts";

/** The root of a tree without leaves: RFC 6962, section 2.1. */
export const EMPTY_ROOT: Uint8Array = hash("sha256", new Uint8Array(), "buffer");

/**
 * Maximum number of hashes in a tile, a block of hashes of one level of the Merkle tree (https://c2sp.org/tlog-tiles,
 * height 8).
 */
export const TILE_HASHES = 256;

const node = new Uint8Array(1 + 2 * HASH_BYTES).fill(1, 0, 1);

/** Returns the hash of a leaf of a Merkle tree: SHA-256(0x00 ‖ bytes). */
export function hashLeaf(bytes: Uint8Array): Buffer {
  const prefixed = Buffer.allocUnsafe(1 + bytes.length);
  prefixed[0] = 0;
  prefixed.set(bytes, 1);
  return hash("sha256", prefixed, "buffer");
}

/** Returns the hash of an inner node of a Merkle tree: SHA-256(0x01 ‖ left ‖ right). */
function hashNode(left: Uint8Array, right: Uint8Array): Buffer {
  node.set(left, 1);
  node.set(right, 1 + HASH_BYTES);
  return hash("sha256", node, "buffer");
}

/** Returns the root over concatenated hashes; their number is a power of two. */
export function foldHashes(hashes: Uint8Array): Uint8Array {
  if (hashes.length <= HASH_BYTES) return hashes;
  const half = hashes.length / 2;
  return hashNode(foldHashes(hashes.subarray(0, half)), foldHashes(hashes.subarray(half)));
}

interface RangeNode {
  readonly level: number;
  /** Number of the subtree within its level, counted from 0 over the whole log. */
  readonly index: number;
  readonly hash: Uint8Array;
}

/**
 * Merkle tree over consecutive leaves that begin with number `first` (from 0), as the roots of its largest full
 * subtrees. Adjacent ranges can be joined, so a root can be computed without reading the leaves again.
 */
export interface TreeRange {
  add(leaf: Uint8Array): void;
  /** Appends a range that begins where this one ends. */
  join(next: TreeRange): void;
  nodes(): readonly RangeNode[];
  /** Returns the root of a range that begins with the first leaf. */
  root(): Uint8Array;
}

export function createTreeRange(first: number): TreeRange {
  const nodes: RangeNode[] = [];
  let next = first;
  const push = (node: RangeNode): void => {
    const last = nodes.at(-1);
    if (last?.level !== node.level || node.index % 2 === 0) return void nodes.push(node);
    nodes.pop();
    push({ level: node.level + 1, index: (node.index - 1) / 2, hash: hashNode(last.hash, node.hash) });
  };
  return {
    add(leaf) {
      push({ level: 0, index: next, hash: leaf });
      next += 1;
    },
    join(range) {
      for (const node of range.nodes()) {
        push(node);
        next += 2 ** node.level;
      }
    },
    nodes: () => nodes,
    root: () =>
      nodes.length === 0
        ? EMPTY_ROOT
        : nodes.map(({ hash }) => hash).reduceRight((right, left) => hashNode(left, right)),
  };
}

/** Returns the largest power of two below `size`. */
function splitOf(size: number): number {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
}

/** Returns the first `width` hashes of one tile, concatenated. */
export type ReadTile = (level: number, index: number, width: number) => Promise<Uint8Array>;

/** The Merkle tree over the first `size` leaves of a log. Each tile is read once at most. */
export interface Tree {
  root(): Promise<Uint8Array>;
  /** The audit path of the leaf at `index`, counted from 0, from its sibling up: RFC 6962, section 2.1.1. */
  inclusion(index: number): Promise<Uint8Array[]>;
  /** Proves that the tree of the first `size` leaves is the start of this one: RFC 6962, section 2.1.2. */
  consistency(size: number): Promise<Uint8Array[]>;
}

export function createTree(size: number, readTile: ReadTile): Tree {
  const tiles = new Map<string, Promise<Uint8Array>>();

  function tile(level: number, index: number): Promise<Uint8Array> {
    const name = `${level}/${index}`;
    const width = Math.min(TILE_HASHES, Math.floor(size / TILE_HASHES ** level) - index * TILE_HASHES);
    const read = tiles.get(name) ?? readTile(level, index, width);
    tiles.set(name, read);
    return read;
  }

  /**
   * Returns the root over the `count` leaves from leaf `first` on. If `count` is a power of two, `first` must be a
   * multiple of it.
   */
  async function range(first: number, count: number): Promise<Uint8Array> {
    const split = splitOf(count);
    if (count > 1 && split * 2 !== count)
      return hashNode(await range(first, split), await range(first + split, count - split));
    const level = Math.floor(Math.log2(count) / 8);
    const [from, hashes] = [first / TILE_HASHES ** level, count / TILE_HASHES ** level];
    const offset = from % TILE_HASHES;
    const bytes = await tile(level, Math.floor(from / TILE_HASHES));
    return foldHashes(bytes.subarray(offset * HASH_BYTES, (offset + hashes) * HASH_BYTES));
  }

  async function path(index: number, first: number, count: number): Promise<Uint8Array[]> {
    if (count === 1) return [];
    const split = splitOf(count);
    if (index < split) return [...(await path(index, first, split)), await range(first + split, count - split)];
    return [...(await path(index - split, first + split, count - split)), await range(first, split)];
  }

  /**
   * Returns the hashes of a consistency proof that concern one subtree. `isKnown`: the subtree's root is that of the
   * older tree, so it need not be sent.
   */
  async function sub(old: number, first: number, count: number, isKnown: boolean): Promise<Uint8Array[]> {
    if (old === count) return isKnown ? [] : [await range(first, count)];
    const split = splitOf(count);
    if (old <= split) return [...(await sub(old, first, split, isKnown)), await range(first + split, count - split)];
    return [...(await sub(old - split, first + split, count - split, false)), await range(first, split)];
  }

  return {
    root: async () => (size === 0 ? EMPTY_ROOT : range(0, size)),
    inclusion: (index) => path(index, 0, size),
    consistency: async (old) => (old === 0 ? [] : sub(old, 0, size, true)),
  };
}

/** The size and root of a signed tree. */
export interface TreeHead {
  readonly size: number;
  readonly root: Uint8Array;
}

/** True if the leaf with that hash stands at `index` in the tree. */
export function provesInclusion(
  { size, root }: TreeHead,
  index: number,
  leaf: Uint8Array,
  proof: readonly Uint8Array[],
): boolean {
  if (!isCount(size) || !isCount(index) || index >= size || !areHashes([leaf, ...proof])) return false;
  const left = [...proof];
  const climb = (at: number, count: number): Uint8Array | undefined => {
    if (count === 1) return leaf;
    const [sibling, split] = [left.pop(), splitOf(count)];
    const below = at < split ? climb(at, split) : climb(at - split, count - split);
    if (sibling === undefined || below === undefined) return undefined;
    return at < split ? hashNode(below, sibling) : hashNode(sibling, below);
  };
  return isSame(climb(index, size), root) && left.length === 0;
}

/** True if the tree `newer` begins with all of `older`, which must not be empty. */
export function provesConsistency(older: TreeHead, newer: TreeHead, proof: readonly Uint8Array[]): boolean {
  if (!isCount(older.size) || !isCount(newer.size) || older.size === 0 || older.size > newer.size) return false;
  if (older.size === newer.size) return proof.length === 0 && isSame(older.root, newer.root);
  if (!areHashes([older.root, ...proof])) return false;
  const left = [...proof];
  /**
   * Returns, for a subtree, its roots in the older and in the newer tree; undefined if the proof has too few hashes.
   */
  const climb = (old: number, count: number, isKnown: boolean): readonly [Uint8Array, Uint8Array] | undefined => {
    const next = old === count && isKnown ? older.root : left.pop();
    if (next === undefined) return undefined;
    if (old === count) return [next, next];
    const split = splitOf(count);
    const below = old <= split ? climb(old, split, isKnown) : climb(old - split, count - split, false);
    if (below === undefined) return undefined;
    return old <= split ? [below[0], hashNode(below[1], next)] : [hashNode(next, below[0]), hashNode(next, below[1])];
  };
  const roots = climb(older.size, newer.size, true);
  return isSame(roots?.[0], older.root) && isSame(roots?.[1], newer.root) && left.length === 0;
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function areHashes(values: readonly Uint8Array[]): boolean {
  return values.every(({ length }) => length === HASH_BYTES);
}

function isSame(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && Buffer.from(a).equals(b);
}

/** Returns the path of a tile on a static server of https://c2sp.org/tlog-tiles. */
export function tilePath(level: number, index: number, width: number): string {
  const groups =
    String(index)
      .padStart(Math.ceil(String(index).length / 3) * 3, "0")
      .match(/.{3}/g) ?? [];
  const name = groups.map((group, at) => (at < groups.length - 1 ? `x${group}` : group)).join("/");
  return `tile/${level}/${name}${width === TILE_HASHES ? "" : `.p/${width}`}`;
}
