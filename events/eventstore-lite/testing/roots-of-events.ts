import type { EventStore } from "../src/store.ts";
import { createTree, foldHashes, hashLeaf, TILE_HASHES } from "../src/merkle/tree.ts";

/**
 * Returns a function that gives the root of the Merkle tree over the first events of a log, in hex, by their number. It
 * uses only the events, and no stored tile.
 */
export async function rootsOfEvents({ readCanonical }: Pick<EventStore, "readCanonical">) {
  const leaves: Uint8Array[] = [];
  for await (const events of readCanonical({ from: 1, to: Infinity })) leaves.push(...events.map(hashLeaf));
  // Each full tile is made once.
  const full = new Map<string, Promise<Uint8Array>>();
  const makeTile = async (level: number, index: number, width: number): Promise<Uint8Array> => {
    const children = Array.from({ length: width }, (_, at) => index * TILE_HASHES + at);
    if (level === 0) return Buffer.concat(children.map((child) => leaves[child]!));
    return Buffer.concat(
      await Promise.all(children.map(async (child) => foldHashes(await readTile(level - 1, child, TILE_HASHES)))),
    );
  };
  const readTile = (level: number, index: number, width: number): Promise<Uint8Array> => {
    const name = `${level}/${index}/${width}`;
    const made = full.get(name) ?? makeTile(level, index, width);
    if (width === TILE_HASHES) full.set(name, made);
    return made;
  };
  return {
    size: leaves.length,
    rootOf: async (size: number): Promise<string> =>
      Buffer.from(await createTree(size, readTile).root()).toString("hex"),
  };
}
