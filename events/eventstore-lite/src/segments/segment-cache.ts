import { hash } from "node:crypto";
import type { Awaitable } from "../value-or-promise.ts";
import { SegmentDamaged } from "../errors.ts";
import { createChain, readSegment } from "./seal-and-open-segments.ts";
import type { StoredKey } from "../event-store-interface.ts";
import type { RecordedFile, SegmentEntry } from "./catalogue.ts";
import type { SegmentReader } from "./segment-storage.ts";

/** Maximum number of segments kept open, for all readers together: some 10 MB each, with their parsed form. */
const OPEN_MAX = 8;

/**
 * Maximum number of segments opened at the same time. More would wait for the threads that decompress, each with its
 * file in memory.
 */
const OPENING_MAX = 4;

/**
 * Maximum decompressed size of a segment that is opened. A segment holds 4 MiB of events, one event more, and 32,768
 * idempotency keys: some 10 MB, or 110 MB if each key is as long as allowed.
 */
export const OPENED_BYTES_MAX: number = 128 * 1024 * 1024;

/** A segment whose events can be read in any order. */
export interface OpenSegment {
  /** Position of the segment's last event. */
  readonly last: number;
  /** Returns the canonical bytes of the event at a position. */
  canonical(position: number): Buffer;
  /** Returns the stored hash of the event at a position, in hex. */
  hash(position: number): string;
  readonly keys: readonly StoredKey[];
}

/**
 * Opens the segment of a catalogue entry. A reader keeps no segment while it waits for its consumer, and calls this
 * again afterwards.
 */
export type OpenSegments = (entry: SegmentEntry) => Promise<OpenSegment>;

/**
 * Opens segments for readers, and keeps the few that were opened last. Reads a file only if it has the size and SHA-256
 * that the database records; only `verify` proves the events in it. Throws {@link SegmentDamaged}, which names the
 * file.
 */
export function createOpenSegments(storage: SegmentReader): OpenSegments {
  const opened = new Map<string, OpenSegment>();
  const opening = new Map<string, Promise<OpenSegment>>();
  const waiting: (() => void)[] = [];
  let running = 0;

  async function openNext(entry: SegmentEntry): Promise<OpenSegment> {
    if (running >= OPENING_MAX) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      const segment = await open(storage, entry);
      opened.set(entry.name, segment);
      if (opened.size > OPEN_MAX) opened.delete(opened.keys().next().value!);
      return segment;
    } finally {
      opening.delete(entry.name);
      // Passes the slot on to the next call that waits to open a segment.
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  }

  return async (entry) => {
    const known = opened.get(entry.name);
    if (known === undefined) {
      const open = opening.get(entry.name) ?? openNext(entry);
      opening.set(entry.name, open);
      return open;
    }
    opened.delete(entry.name);
    opened.set(entry.name, known);
    return known;
  };
}

async function open(storage: SegmentReader, entry: SegmentEntry): Promise<OpenSegment> {
  const { header, canonical, keys } = await named(entry, async () => {
    const file = await readFile(storage, entry.name, entry);
    return readSegment(file, OPENED_BYTES_MAX);
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

/** Throws {@link SegmentDamaged} if the file is missing, or differs from the one that was `sealed`. */
export async function readFile(
  storage: SegmentReader,
  name: string,
  sealed: RecordedFile | undefined,
): Promise<Uint8Array> {
  const file = await storage.read(name);
  if (file === undefined) throw new SegmentDamaged("it is missing: put it back from a backup");
  if (sealed !== undefined && (file.length !== sealed.bytes || hash("sha256", file) !== sealed.sha256))
    throw new SegmentDamaged("its bytes are not those that were sealed: put it back from a backup");
  return file;
}

/** Adds the segment's name to a {@link SegmentDamaged} that `work` throws. */
export async function named<Read>(entry: SegmentEntry, work: () => Awaitable<Read>): Promise<Read> {
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
