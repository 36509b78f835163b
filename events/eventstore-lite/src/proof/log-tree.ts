import { hash } from "node:crypto";
import { HASH_BYTES } from "../event-hash-chain.ts";
import { ChainBroken, SnapshotAhead } from "../errors.ts";
import type { EventStore, Snapshot } from "../event-store-interface.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { createTree, foldHashes, hashLeaf, TILE_HASHES, type Tree } from "./merkle-tree.ts";

/**
 * Version of the format of tiles (blocks of the Merkle tree's hashes) and of their storage. Tiles of another version
 * are rebuilt.
 */
const VERSION = 1;

const SCRATCH_BYTES_START = 64 * 1024;

/**
 * Name of the snapshot that records how far the tiles reach. Its state is the chain's hash there, which shows that the
 * tiles are of this log.
 */
const BUILT = "merkle";
const tileName = (level: number, index: number): string => `${BUILT}/${level}/${index}`;

/**
 * Maximum number of events that one call adds: some 200 ms of work (3 µs an event), 2 % of a thread that calls every
 * ten seconds. A tree that is far behind catches up over many calls, so that a start does not wait for it.
 */
const EXTEND_EVENTS_MAX = 65_536;

/**
 * The Merkle tree over the canonical bytes of a log's events. Tiles from level 1 on are snapshots of the log; a tile of
 * level 0 is 256 hashes of events, made when it is read. Missing tiles are made from the level below.
 */
export interface LogTree {
  /** Returns the Merkle tree over the log's first `size` events. */
  at(size: number): Tree;
  /** Returns the root of the Merkle tree over the log's first `size` events, in hex as in a checkpoint. */
  root(size: number): Promise<string>;
  /**
   * True if the log's events have another root than the one in the checkpoint. Stored tiles may be wrong although the
   * log is right, so they are computed again before the answer.
   */
  denies(checkpoint: Checkpoint): Promise<boolean>;
  /**
   * Adds full tiles up to position `to`, as many as one call may. True if no full tile is missing. Throws
   * {@link ChainBroken}.
   */
  extend(to: number): Promise<boolean>;
  /** Removes all stored tiles, so that they are rebuilt from the log. */
  forget(): Promise<void>;
}

/** Reads stored tiles, and makes the others from the level below. */
interface TileReader {
  /**
   * Returns the position up to which the stored tiles (blocks of hashes) of this log's Merkle tree cover the events; 0
   * if none are stored.
   */
  builtTo(): Promise<number>;
  readTile(built: number, level: number, index: number, width: number): Promise<Uint8Array>;
  /** Drops from memory the tiles that were made from the level below and are stored by now. */
  dropBuilt(built: number): void;
  dropAll(): void;
}

/** Tile of level 1 or more that is made in memory from the level below; its first `count` hashes are set. */
interface GrowingTile {
  readonly hashes: Uint8Array;
  count: number;
  /**
   * Work of the caller that is now adding hashes to this tile of the Merkle tree. All other callers wait for it;
   * undefined if no caller adds any.
   */
  growing: Promise<void> | undefined;
}

/**
 * Tile reader of each open log, shared by all requests so that events are hashed once for all of them. A reader holds 8
 * KB for 65,536 events that have no stored tile yet.
 */
const readers = new WeakMap<EventStore, TileReader>();

function shareTileReader(log: EventStore): TileReader {
  const reader = readers.get(log) ?? createTileReader(log);
  readers.set(log, reader);
  return reader;
}

function createTileReader({ readCanonical, hashAt, snapshots }: EventStore): TileReader {
  const tiles = new Map<string, GrowingTile>();

  async function load(name: string): Promise<Snapshot | undefined> {
    try {
      const snapshot = await snapshots.load(name);
      return snapshot?.version === VERSION ? snapshot : undefined;
    } catch (error) {
      if (error instanceof SnapshotAhead) return undefined;
      throw error;
    }
  }

  async function builtTo(): Promise<number> {
    const built = await load(BUILT);
    return built !== undefined && (await hashAt(built.position)) === built.state ? built.position : 0;
  }

  async function readLeaves(first: number, count: number): Promise<Uint8Array> {
    const leaves: Uint8Array[] = [];
    for await (const events of readCanonical({ from: first + 1, to: first + count }))
      for (const event of events) leaves.push(hashLeaf(event));
    if (leaves.length !== count) throw new ChainBroken(first + leaves.length + 1);
    return Buffer.concat(leaves);
  }

  async function readTile(built: number, level: number, index: number, width: number): Promise<Uint8Array> {
    const first = index * TILE_HASHES;
    if (level === 0) return readLeaves(first, width);
    const isBuilt = (first + width) * TILE_HASHES ** level <= built;
    const stored = isBuilt ? Buffer.from((await load(tileName(level, index)))?.state ?? "", "base64") : undefined;
    if (stored !== undefined && stored.length >= width * HASH_BYTES) return stored.subarray(0, width * HASH_BYTES);
    return makeTile(built, level, index, width);
  }

  async function makeTile(built: number, level: number, index: number, width: number): Promise<Uint8Array> {
    const name = tileName(level, index);
    const tile = tiles.get(name) ?? { hashes: new Uint8Array(TILE_HASHES * HASH_BYTES), count: 0, growing: undefined };
    tiles.set(name, tile);
    while (tile.count < width) {
      tile.growing ??= grow(tile, built, level, index, width).finally(() => (tile.growing = undefined));
      await tile.growing;
    }
    return tile.hashes.slice(0, width * HASH_BYTES);
  }

  async function grow(tile: GrowingTile, built: number, level: number, index: number, width: number): Promise<void> {
    for (; tile.count < width; tile.count += 1) {
      const below = await readTile(built, level - 1, index * TILE_HASHES + tile.count, TILE_HASHES);
      tile.hashes.set(foldHashes(below), tile.count * HASH_BYTES);
    }
  }

  return {
    builtTo,
    readTile,
    dropBuilt(built) {
      for (const [name] of tiles) {
        const [, level, index] = name.split("/");
        if ((Number(index) + 1) * TILE_HASHES ** (Number(level) + 1) <= built) tiles.delete(name);
      }
    },
    dropAll: () => tiles.clear(),
  };
}

/**
 * Opens the tree over the first `size` events. Reads once how far the stored tiles reach, so that all its tiles agree
 * on it.
 */
function openTree({ builtTo, readTile }: TileReader, size: number): Tree {
  let built: Promise<number> | undefined;
  return createTree(size, async (level, index, width) => readTile(await (built ??= builtTo()), level, index, width));
}

async function deniesRoot(
  { position, root }: Checkpoint,
  readRoot: (size: number) => Promise<string>,
  forget: () => Promise<void>,
): Promise<boolean> {
  if (root === undefined || (await readRoot(position)) === root) return false;
  await forget();
  return (await readRoot(position)) !== root;
}

export function createLogTree(log: EventStore): LogTree {
  const { readCanonical, hashAt, snapshots } = log;
  const reader = shareTileReader(log);
  const { builtTo, readTile, dropBuilt, dropAll } = reader;

  /**
   * Returns the roots over each 256 events from `from` + 1 to `to`. Throws {@link ChainBroken} unless the hash chain
   * over these events ends with the hash that the log stores for the last one.
   */
  async function foldEvents(from: number, to: number): Promise<Uint8Array[]> {
    const folded: Uint8Array[] = [];
    let chain = Buffer.from((await hashAt(from)) ?? "", "hex");
    // Buffer for the bytes of one event. The link of the hash chain and the leaf of the tree hash the same bytes after
    // different prefixes, so one copy of them serves both.
    let scratch = Buffer.alloc(SCRATCH_BYTES_START);
    const leaves = Buffer.alloc(TILE_HASHES * HASH_BYTES);
    let count = 0;
    for await (const events of readCanonical({ from: from + 1, to })) {
      for (const event of events) {
        const end = HASH_BYTES + event.length;
        if (end > scratch.length) scratch = Buffer.alloc(2 * end);
        scratch.set(chain);
        scratch.set(event, HASH_BYTES);
        chain = hash("sha256", scratch.subarray(0, end), "buffer");
        scratch[HASH_BYTES - 1] = 0;
        leaves.set(hash("sha256", scratch.subarray(HASH_BYTES - 1, end), "buffer"), count * HASH_BYTES);
        count = (count + 1) % TILE_HASHES;
        if (count === 0) folded.push(foldHashes(leaves));
      }
    }
    if (chain.toString("hex") !== (await hashAt(to))) throw new ChainBroken(to);
    return folded;
  }

  /**
   * Appends hashes to the stored tiles of one level, and the roots of the tiles that are then full to the level above.
   */
  async function append(built: number, level: number, first: number, hashes: readonly Uint8Array[]): Promise<void> {
    const above: Uint8Array[] = [];
    const [firstTile, offset] = [Math.floor(first / TILE_HASHES), first % TILE_HASHES];
    let before = offset === 0 ? new Uint8Array() : await readTile(built, level, firstTile, offset);
    for (let [index, at] = [firstTile, 0]; at < hashes.length; index += 1) {
      const room = TILE_HASHES - before.length / HASH_BYTES;
      const tile = Buffer.concat([before, ...hashes.slice(at, at + room)]);
      const position = (index * TILE_HASHES + tile.length / HASH_BYTES) * TILE_HASHES ** level;
      await snapshots.save(tileName(level, index), { version: VERSION, position, state: tile.toString("base64") });
      if (tile.length === TILE_HASHES * HASH_BYTES) above.push(foldHashes(tile));
      at += room;
      before = new Uint8Array();
    }
    if (above.length > 0) await append(built, level + 1, firstTile, above);
  }

  async function forget(): Promise<void> {
    dropAll();
    await snapshots.remove([BUILT]);
    await snapshots.remove((await snapshots.list(`${BUILT}/`)).map(({ name }) => name));
  }

  const at = (size: number): Tree => openTree(reader, size);
  const root = async (size: number): Promise<string> => Buffer.from(await at(size).root()).toString("hex");

  return {
    at,
    root,
    denies: (checkpoint) => deniesRoot(checkpoint, root, forget),
    async extend(to) {
      const built = await builtTo();
      // Tiles that exist although none is recorded are left by an interrupted call, or belong to a log that lost
      // events.
      if (built === 0) await forget();
      const whole = to - (to % TILE_HASHES);
      const end = Math.min(whole, built + EXTEND_EVENTS_MAX);
      if (end > built) {
        await append(built, 1, built / TILE_HASHES, await foldEvents(built, end));
        // The record of how far the tiles reach is saved last, so that tiles that a crash left incomplete do not count.
        const chainEnd = (await hashAt(end)) ?? "";
        await snapshots.save(BUILT, { version: VERSION, position: end, state: chainEnd });
        dropBuilt(end);
      }
      return end >= whole;
    },
    forget,
  };
}
