import { ChainBroken, SegmentDamaged } from "../errors.ts";
import { type Segment, sealSegments } from "../segment.ts";
import type { EventStore, Head, StoredKey } from "../store.ts";
import type { Catalogue, SegmentEntry } from "./catalogue.ts";
import { createKeyReader } from "./keys.ts";
import type { OpenSegment, OpenSegments } from "./open-segments.ts";
import { proveApart } from "./prove-apart.ts";
import type { SegmentStorage } from "./storage.ts";

/**
 * Uncompressed. One event's look-up decompresses one segment, and its rows are removed in one transaction: the one takes
 * some ten milliseconds, the other thirty.
 */
export const ARCHIVED_BYTES_MAX: number = 4 * 1024 * 1024;

/** Keys of one transaction, which appends wait for: not longer than for the removal of a segment's events. */
const RECORDED_KEYS_MAX = 1_024;

/** Digits of a position in a file's name: the names have the order of the positions. */
const POSITION_DIGITS = 12;
/** Hex digits of the chain's end in a file's name: a log that was restored and went on otherwise writes other files. */
const HASH_DIGITS = 16;

/** A segment that is durable, as the engine records it. What else there is to know of it, the engine takes from its events. */
export type SegmentFile = Pick<SegmentEntry, "first" | "last" | "name" | "bytes" | "sha256" | "hash" | "keysFrom">;

/** What sealing needs of an engine. */
export interface ArchiverStore extends Pick<EventStore, "id" | "readCanonical" | "hashAt" | "head"> {
  /** As `readKeys`, of the keys that the database holds whole. */
  readonly readWholeKeys: EventStore["readKeys"];
  /** Throws {@link StoreUnusable} where this program may not take events out of the database. */
  requireRight?(): Promise<void>;
  /**
   * Records a segment and removes its events from the database, in one transaction. Without effect unless it is the next
   * one, which another process may have archived.
   */
  record(file: SegmentFile): Promise<void>;
  /** Has the database keep a hash of keys alone which the segment that ends at position `last` holds. */
  recordKeys(last: number, keys: readonly StoredKey[]): Promise<void>;
}

/**
 * Moves the oldest events of a log into sealed segments, up to position `to` at the most, and never the newest event; gives
 * each segment once its events are in it alone. `fullOnly`: what does not fill a segment stays. Ended at any point, it
 * leaves each event in the log or in a durable segment, and the next call goes on there.
 */
export async function* archiveEvents(
  store: ArchiverStore,
  catalogue: Catalogue,
  storage: SegmentStorage,
  open: OpenSegments,
  { to, fullOnly = false }: { readonly to: number; readonly fullOnly?: boolean },
): AsyncGenerator<SegmentEntry, void, void> {
  await store.requireRight?.();
  const readKeys = createKeyReader(store);
  for (;;) {
    await catalogue.refresh();
    const { end } = catalogue;
    const { position: newest } = await store.head();
    const last = Math.min(to, newest - 1);
    if (end >= last) return;
    const hash = await store.hashAt(end);
    if (hash === undefined) throw new ChainBroken(end);
    const segment = await sealNext({ ...store, readKeys }, { position: end, hash }, last);
    if (fullOnly && segment.header.last === last) return;
    await store.record(await keep(store.id, storage, segment, { position: end, hash }));
    await catalogue.refresh();
    if (catalogue.end === end) throw new ChainBroken(segment.header.last);
    // Another process may have been faster, with more or fewer events.
    const recorded = catalogue.entries()[catalogue.locate(end + 1)]!;
    await recordKeys(store, await open(recorded));
    yield recorded;
  }
}

async function sealNext(
  store: Parameters<typeof sealSegments>[0],
  after: Pick<Head, "position" | "hash">,
  to: number,
): Promise<Segment> {
  for await (const segment of sealSegments(store, after, to, ARCHIVED_BYTES_MAX)) return segment;
  throw new ChainBroken(after.position + 1);
}

/**
 * What the file holds counts, which an earlier call may have written with other keys. What is cut off here leaves keys
 * whole, and a later segment takes them.
 */
async function recordKeys(store: ArchiverStore, { last, keys }: OpenSegment): Promise<void> {
  for (let at = 0; at < keys.length; at += RECORDED_KEYS_MAX)
    await store.recordKeys(last, keys.slice(at, at + RECORDED_KEYS_MAX));
}

/** Writes a segment, unless a call that was cut off has, reads it back and proves it. Throws {@link SegmentDamaged}. */
async function keep(
  log: string,
  storage: SegmentStorage,
  { header, bytes }: Segment,
  after: Pick<Head, "position" | "hash">,
): Promise<SegmentFile> {
  const { first, last, hash } = header;
  const name = `${digits(first)}-${digits(last)}-${hash.slice(0, HASH_DIGITS)}.zst`;
  // Another version may compress the same events to other bytes.
  const kept = await storage.read(name);
  if (kept === undefined) await storage.write(name, bytes);
  const size = kept?.length ?? bytes.length;
  const [proof] = await proveApart(storage, {
    log,
    segments: [{ name, bytes: size, events: last - first + 1, after }],
  });
  const damage = proof === undefined ? "it was not proved" : "damage" in proof ? proof.damage : undefined;
  if (proof === undefined || "damage" in proof || proof.header.hash !== hash) {
    throw new SegmentDamaged(`${name}: ${damage ?? "it holds other events"}. Move the file away`);
  }
  return { first, last, name, bytes: size, sha256: proof.sha256, hash, keysFrom: proof.keysFrom };
}

function digits(position: number): string {
  return String(position).padStart(POSITION_DIGITS, "0");
}
