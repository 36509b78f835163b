import { ChainBroken, SegmentDamaged } from "../errors.ts";
import { type SealableLog, type Segment, sealSegments } from "./seal-and-open-segments.ts";
import type { LogReading, ChainPoint, StoredKey } from "../event-store-interface.ts";
import type { ArchiveTable, Catalogue, SegmentEntry, SegmentFile, SegmentRange } from "./catalogue.ts";
import { createKeyReader } from "./idempotency-keys.ts";
import type { OpenSegment, OpenSegments } from "./segment-cache.ts";
import { proveApart } from "./validate-in-thread.ts";
import type { SegmentStorage } from "./segment-storage.ts";

/**
 * Uncompressed size at which a segment of the archive ends. Looking up one event decompresses one segment, which takes
 * some 10 ms. Removing its events from the database is one transaction of some 30 ms.
 */
export const ARCHIVED_BYTES_MAX: number = 4 * 1024 * 1024;

/**
 * Maximum number of idempotency keys that one transaction records. Appends wait for such a transaction no longer than
 * for the one that removes a segment's events.
 */
const RECORDED_KEYS_MAX = 1_024;

/** Digits of a position in a file name, so that names sort by position. */
const POSITION_DIGITS = 12;
/**
 * Hex digits of the chain's end in a file name, so that a log that was restored and continued differently writes other
 * files.
 */
const HASH_DIGITS = 16;

/** The part of an engine that records segments. */
export interface SegmentRecorder {
  /**
   * Records a segment and removes its events from the database, in one transaction. Has no effect unless it is the next
   * segment, because another process may have archived it.
   */
  record(file: SegmentFile): Promise<void>;
  /** Makes the database keep only hashes of the keys that the segment ending at position `last` holds. */
  recordKeys(last: number, keys: readonly StoredKey[]): Promise<void>;
}

/** The part of an engine that moves events into segments: reading the log, and recording segments. */
export interface ArchiverStore extends LogReading, SegmentRecorder {
  readonly id: string;
}

/**
 * Moves the oldest events into sealed segments, never the newest event. Yields each segment after its events have left
 * the database. If stopped, each event is in the database or in a durable segment, and the next call continues.
 */
export async function* archiveEvents(
  store: ArchiverStore,
  table: ArchiveTable,
  catalogue: Catalogue,
  storage: SegmentStorage,
  open: OpenSegments,
  /**
   * `to`: last position to move. `fullOnly`: true if the newest of these events stay in the database unless they fill a
   * segment.
   */
  { to, fullOnly = false }: { readonly to: number; readonly fullOnly?: boolean },
): AsyncGenerator<SegmentEntry, void, void> {
  await table.requireRight?.();
  const files = parseNames(await storage.list());
  const readKeys = createKeyReader(store, table);
  for (;;) {
    await catalogue.refresh();
    const { end } = catalogue;
    const { position: newest } = await store.head();
    const last = Math.min(to, newest - 1);
    if (end >= last) return;
    const hash = await store.hashAt(end);
    if (hash === undefined) throw new ChainBroken(end);
    const after = { position: end, hash };
    let segment = await findLeft(store, files.get(end + 1) ?? [], last);
    let writtenBytes: number | undefined;
    if (segment === undefined) {
      const { header, bytes } = await sealNext({ ...store, readKeys }, after, last);
      if (fullOnly && header.last === last) return;
      await write(storage, nameFile(header), bytes);
      segment = header;
      writtenBytes = bytes.length;
    }
    await store.record(await prove(store.id, storage, segment, after, writtenBytes));
    await catalogue.refresh();
    if (catalogue.end === end) throw new ChainBroken(end + 1);
    // Another process may have recorded a segment of these events first, with more or fewer of them.
    const recorded = catalogue.entries()[catalogue.locate(end + 1)]!;
    await recordKeys(store, await open(recorded));
    yield recorded;
  }
}

async function sealNext(store: SealableLog, after: ChainPoint, to: number): Promise<Segment> {
  for await (const segment of sealSegments(store, after, to, ARCHIVED_BYTES_MAX)) return segment;
  throw new ChainBroken(after.position + 1);
}

/**
 * Records the keys from the segment's file, which may differ from the log's: an earlier, interrupted call may have
 * written the file. Keys that are left whole in the database go into a later segment.
 */
async function recordKeys(store: ArchiverStore, { last, keys }: OpenSegment): Promise<void> {
  for (let at = 0; at < keys.length; at += RECORDED_KEYS_MAX)
    await store.recordKeys(last, keys.slice(at, at + RECORDED_KEYS_MAX));
}

function nameFile({ first, last, hash }: SegmentRange): string {
  return `${digits(first)}-${digits(last)}-${hash.slice(0, HASH_DIGITS)}.zst`;
}

const NAME = new RegExp(
  String.raw`^(\d{${POSITION_DIGITS},})-(\d{${POSITION_DIGITS},})-([0-9a-f]{${HASH_DIGITS}})\.zst$`,
);

/** Returns the segments among the stored files, as their names describe them, by their first position. */
function parseNames(names: readonly string[]): ReadonlyMap<number, SegmentRange[]> {
  const found = new Map<number, SegmentRange[]>();
  for (const name of names) {
    const [, first, last, hash] = NAME.exec(name) ?? [];
    if (hash === undefined) continue;
    const segment = { first: Number(first), last: Number(last), hash };
    found.set(segment.first, [...(found.get(segment.first) ?? []), segment]);
  }
  return found;
}

/**
 * Returns the longest segment that ends at or before `to` and whose events are in this log; undefined if there is none.
 * `files`: existing segment files that begin with the same event, left by an interrupted call or by a copy of the log.
 */
async function findLeft(
  store: ArchiverStore,
  files: readonly SegmentRange[],
  to: number,
): Promise<SegmentRange | undefined> {
  for (const { first, last, hash } of files.toSorted((one, other) => other.last - one.last)) {
    const held = last <= to ? await store.hashAt(last) : undefined;
    if (held?.startsWith(hash) === true) return { first, last, hash: held };
  }
  return undefined;
}

/**
 * Writes the file of a segment. If another process has sealed the same events and written the file first, that file is
 * used as it is.
 */
async function write(storage: SegmentStorage, name: string, bytes: Uint8Array): Promise<void> {
  try {
    await storage.write(name, bytes);
  } catch (error) {
    if (!(error instanceof SegmentDamaged) || (await storage.read(name)) === undefined) throw error;
  }
}

/** Reads a segment back and proves it. Throws {@link SegmentDamaged}. */
async function prove(
  log: string,
  storage: SegmentStorage,
  segment: SegmentRange,
  after: ChainPoint,
  writtenBytes: number | undefined,
): Promise<SegmentFile> {
  const { first, last, hash } = segment;
  const name = nameFile(segment);
  const wanted = { name, events: last - first + 1, after, writtenBytes };
  const [proof] = await proveApart(storage, { log, segments: [wanted] });
  const damage = proof === undefined ? "it was not proved" : "damage" in proof ? proof.damage : undefined;
  if (proof === undefined || "damage" in proof || proof.header.hash !== hash) {
    throw new SegmentDamaged(`${name}: ${damage ?? "it holds other events"}. Move the file away`);
  }
  const { bytes, sha256, keysFrom } = proof;
  return { first, last, name, bytes, sha256, hash, keysFrom };
}

function digits(position: number): string {
  return String(position).padStart(POSITION_DIGITS, "0");
}
