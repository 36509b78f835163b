import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { openCheckpoint } from "../../src/proof/checkpoint.ts";
import {
  createTree,
  EMPTY_ROOT,
  foldHashes,
  hashLeaf,
  provesConsistency,
  provesInclusion,
  TILE_HASHES,
  tilePath,
  type Tree,
} from "../../src/proof/merkle-tree.ts";
import { parsePublicKey } from "../../src/proof/signing-key.ts";
import consistency from "./vectors/consistency.json";
import inclusion from "./vectors/inclusion.json";
import tessera from "./vectors/tessera-log.json";

const bytes = (base64: string): Buffer => Buffer.from(base64, "base64");
const hashesOf = (proof: readonly string[] | null) => (proof ?? []).map(bytes);

const LEAVES_MAX = 300;
const leaves = Array.from({ length: LEAVES_MAX }, (_, index) => hashLeaf(Buffer.from(`leaf ${index}`)));
const leaf = (index: number): Uint8Array => leaves[index]!;

/** Returns the Merkle tree over the first `size` test leaves; its tiles are made when they are read. */
function treeOf(size: number, leafAt: (index: number) => Uint8Array = leaf): Tree {
  const readTile = async (level: number, index: number, width: number): Promise<Uint8Array> => {
    const hashes = Array.from({ length: width }, async (_, at) => {
      const child = index * TILE_HASHES + at;
      return level === 0 ? leafAt(child) : foldHashes(await readTile(level - 1, child, TILE_HASHES));
    });
    return Buffer.concat(await Promise.all(hashes));
  };
  return createTree(size, readTile);
}

/** Returns the root of a Merkle tree as RFC 6962, section 2.1, defines it. */
function rootByDefinition(leaves: readonly Uint8Array[]): Uint8Array {
  if (leaves.length < 2) return leaves[0] ?? EMPTY_ROOT;
  const split = 2 ** Math.ceil(Math.log2(leaves.length) - 1);
  return foldHashes(Buffer.concat([rootByDefinition(leaves.slice(0, split)), rootByDefinition(leaves.slice(split))]));
}

function flip(value: Uint8Array, bit: number): Uint8Array {
  const flipped = Buffer.from(value);
  flipped[bit >> 3]! ^= 1 << (bit & 7);
  return flipped;
}

const HASH_BITS = 256;
const size = fc.integer({ min: 1, max: LEAVES_MAX });
const bit = fc.nat(HASH_BITS - 1);

describe("the published vectors", () => {
  test("include 98 for inclusion and 98 for consistency", () => {
    expect([inclusion.length, consistency.length]).toEqual([98, 98]);
  });

  test.each(inclusion.map((vector) => [vector.file, vector] as const))("%s", (_, vector) => {
    const head = { size: vector.treeSize, root: bytes(vector.root) };
    const index = Number(vector.leafIdx);
    expect(provesInclusion(head, index, bytes(vector.leafHash), hashesOf(vector.proof))).toBe(!vector.wantErr);
  });

  test.each(consistency.map((vector) => [vector.file, vector] as const))("%s", (_, vector) => {
    const older = { size: vector.size1, root: bytes(vector.root1) };
    const newer = { size: vector.size2, root: bytes(vector.root2) };
    expect(provesConsistency(older, newer, hashesOf(vector.proof))).toBe(!vector.wantErr);
  });
});

describe("the log that Tessera published", () => {
  const entries = tessera.entries.map((entry) => hashLeaf(Buffer.from(entry)));
  const publicKey = parsePublicKey(
    bytes(/^[^+]*\+[^+]*\+(.+)$/.exec(tessera.verifier)?.[1] ?? "")
      .subarray(1)
      .toString("base64"),
  );

  test.each(Object.entries(tessera.checkpoints))("has our root at size %s", async (size, note) => {
    const { position, hash } = openCheckpoint(note, publicKey);
    expect(position).toBe(Number(size));
    expect(Buffer.from(await treeOf(position, (index) => entries[index]!).root()).toString("hex")).toBe(hash);
  });

  test("has our tiles, byte for byte", () => {
    const tiles = entries.map((_, at) => {
      const hashes = entries.slice(0, at + 1);
      return [tilePath(0, 0, hashes.length), Buffer.concat(hashes).toString("base64")] as const;
    });
    expect(Object.fromEntries(tiles)).toEqual(tessera.tiles);
  });
});

describe("a tree", () => {
  test("has the root as RFC 6962 defines it, at each size", async () => {
    expect(await treeOf(0).root()).toEqual(EMPTY_ROOT);
    for (let count = 1; count <= LEAVES_MAX; count += 1) {
      const expected = rootByDefinition(leaves.slice(0, count));
      expect(Buffer.from(await treeOf(count).root()).equals(expected)).toBe(true);
    }
  });

  test("proves each leaf, and no proof with one of 1,000 flipped bits is accepted", async () => {
    let refused = 0;
    const property = fc.asyncProperty(size, fc.nat(), bit, fc.nat(), async (count, any, at, where) => {
      const index = any % count;
      const tree = treeOf(count);
      const head = { size: count, root: await tree.root() };
      const proof = await tree.inclusion(index);
      expect(provesInclusion(head, index, leaf(index), proof)).toBe(true);
      const part = where % (proof.length + 2);
      const [brokenRoot, brokenLeaf] = [part === 0, part === 1];
      const broken = proof.map((one, place) => (place === part - 2 ? flip(one, at) : one));
      const root = brokenRoot ? flip(head.root, at) : head.root;
      expect(provesInclusion({ ...head, root }, index, brokenLeaf ? flip(leaf(index), at) : leaf(index), broken)).toBe(
        false,
      );
      refused += 1;
    });
    await fc.assert(property, { numRuns: 1_000 });
    expect(refused).toBe(1_000);
  });

  test("proves that it extends its prefixes, and none of 1,000 flipped bits is accepted", async () => {
    let refused = 0;
    const property = fc.asyncProperty(size, fc.nat(), bit, fc.nat(), async (count, any, at, where) => {
      const older = { size: 1 + (any % count), root: await treeOf(1 + (any % count)).root() };
      const tree = treeOf(count);
      const newer = { size: count, root: await tree.root() };
      const proof = await tree.consistency(older.size);
      expect(provesConsistency(older, newer, proof)).toBe(true);
      const part = where % (proof.length + 2);
      const broken = proof.map((one, place) => (place === part - 2 ? flip(one, at) : one));
      const first = { ...older, root: part === 0 ? flip(older.root, at) : older.root };
      const second = { ...newer, root: part === 1 ? flip(newer.root, at) : newer.root };
      expect(provesConsistency(first, second, broken)).toBe(false);
      refused += 1;
    });
    await fc.assert(property, { numRuns: 1_000 });
    expect(refused).toBe(1_000);
  });

  test("reads no tile twice", async () => {
    const read: string[] = [];
    const counted = createTree(70_000, async (level, index, width) => {
      read.push(tilePath(level, index, width));
      return new Uint8Array(width * 32);
    });
    await counted.root();
    expect(read.toSorted()).toEqual(["tile/0/273.p/112", "tile/1/001.p/17", "tile/2/000.p/1"]);
    read.length = 0;
    await counted.inclusion(0);
    expect(read.toSorted()).toEqual(["tile/0/000", "tile/1/000"]);
  });
});

test("tile paths follow the layout of a static server", () => {
  expect(tilePath(0, 1_234_067, TILE_HASHES)).toBe("tile/0/x001/x234/067");
  expect(tilePath(2, 0, 17)).toBe("tile/2/000.p/17");
});
