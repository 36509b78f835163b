import type { EventStore } from "../event-store-interface.ts";
import { createTree, foldHashes, hashLeaf, TILE_HASHES } from "../proof/merkle-tree.ts";

/** The Merkle trees over a log's events, computed from the events alone and without stored tiles. */
export interface EventRoots {
  /** Number of events in the log. */
  readonly size: number;
  /** Returns the root of the Merkle tree over the log's first `size` events, in hex. */
  rootOf(size: number): Promise<string>;
}

export async function rootsOfEvents({ readCanonical }: EventStore): Promise<EventRoots> {
  const leaves: Uint8Array[] = [];
  for await (const events of readCanonical({ from: 1, to: Infinity })) leaves.push(...events.map(hashLeaf));
  // Full tiles by name. Each is computed once.
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
