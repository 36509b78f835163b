import { promisify } from "node:util";
import { zstdDecompress } from "node:zlib";
import { SegmentDamaged } from "../errors.ts";
import { createChain, type ReadSegment, readSegment } from "../segment.ts";
import type { StoredKey } from "../store.ts";
import type { SegmentEntry } from "./catalogue.ts";
import type { SegmentStorage } from "./storage.ts";

/** Some 10 MB each, with what is made of them. */
const OPEN_MAX = 4;

const decompress = promisify(zstdDecompress);

/** A segment whose events can be read in any order. */
export interface OpenSegment {
  /** The position of its last event. */
  readonly last: number;
  /** The canonical bytes of the event at a position. */
  canonical(position: number): Buffer;
  /** The stored hash of the event at a position, in hex. */
  hash(position: number): string;
  readonly keys: readonly StoredKey[];
}

export type OpenSegments = (entry: SegmentEntry) => Promise<OpenSegment>;

/**
 * Opens segments for readers, and keeps the few that were opened last. Trusts the bytes, as a reader trusts the rows of a
 * table: `verify` proves them. Throws {@link SegmentDamaged}, which names the file.
 */
export function createOpenSegments(storage: Pick<SegmentStorage, "read">): OpenSegments {
  const opened = new Map<string, Promise<OpenSegment>>();
  return (entry) => {
    const known = opened.get(entry.name);
    if (known !== undefined) {
      opened.delete(entry.name);
      opened.set(entry.name, known);
      return known;
    }
    const opening = open(storage, entry);
    opened.set(entry.name, opening);
    // What failed is tried again: the file may be back.
    opening.catch(() => opened.delete(entry.name));
    if (opened.size > OPEN_MAX) opened.delete(opened.keys().next().value!);
    return opening;
  };
}

async function open(storage: Pick<SegmentStorage, "read">, entry: SegmentEntry): Promise<OpenSegment> {
  const { header, canonical, keys } = await named(entry, async () => {
    const file = await readFile(storage, entry.name);
    return readSegment(await decompress(file).catch(refuseFrame));
  });
  const isListed = header.first === entry.first && header.last === entry.last && header.hash === entry.hash;
  if (!isListed) throw new SegmentDamaged(`${describe(entry)}: it holds other events than the log says`);
  const hashes: string[] = [];
  const chain = createChain(header.before);
  return {
    last: header.last,
    keys,
    canonical: (position) => canonical[position - header.first]!,
    hash(position) {
      while (hashes.length <= position - header.first) {
        chain.add(canonical[hashes.length]!);
        hashes.push(chain.hash());
      }
      return hashes[position - header.first]!;
    },
  };
}

function refuseFrame(cause: unknown): never {
  throw new SegmentDamaged("it does not decompress", { cause });
}

/** Throws {@link SegmentDamaged} where the file is missing. */
export async function readFile(storage: Pick<SegmentStorage, "read">, name: string): Promise<Uint8Array> {
  const file = await storage.read(name);
  if (file === undefined) throw new SegmentDamaged("it is missing: put it back from a backup");
  return file;
}

/** Adds the segment's name to what is thrown of it. */
async function named(entry: SegmentEntry, work: () => Promise<ReadSegment>): Promise<ReadSegment> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SegmentDamaged)) throw error;
    throw new SegmentDamaged(`${describe(entry)}: ${error.message}`, { cause: error });
  }
}

export function describe({ name, first, last }: SegmentEntry): string {
  return `the segment ${name} of positions ${first} to ${last}`;
}
