import { hash } from "node:crypto";
import { promisify } from "node:util";
import { constants, zstdCompress, zstdDecompress, zstdDecompressSync } from "node:zlib";
import { ChainBroken, SegmentDamaged } from "../errors.ts";
import { createTreeRange, hashLeaf, type TreeRange } from "../proof/merkle-tree.ts";
import type { EventStore, ChainPoint, NewEvent, Recorded, StoredKey } from "../event-store-interface.ts";

/**
 * The first line of a segment, which describes the following lines. docs/segments.md of reachlog documents the format.
 */
export interface SegmentHeader {
  readonly format: "eventstore-lite segment 1";
  /** Id of the log whose events the segment holds. */
  readonly log: string;
  /** Position of the segment's first event. */
  readonly first: number;
  /** Position of the segment's last event. */
  readonly last: number;
  /** Time of the segment's first event, ISO 8601. */
  readonly from: string;
  /** Time of the segment's last event, ISO 8601. */
  readonly until: string;
  /** Number of idempotency keys that follow the events in the segment. */
  readonly keys: number;
  /** Hash of the event before the segment's first one, 64 hex digits. */
  readonly before: string;
  /** Hash of the segment's last event, 64 hex digits. */
  readonly hash: string;
  /**
   * Hashes in hex of the largest full subtrees of the log's Merkle tree that cover the events of this segment and no
   * others, from left to right.
   */
  readonly tree: readonly string[];
}

const FORMAT = "eventstore-lite segment 1";

/** Uncompressed size at which a segment ends; its writer and its readers need only a few times as much memory. */
const SEGMENT_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Maximum decompressed size of a segment, with its idempotency keys: some 200 MB if each of many small events has one.
 * Without this limit, a few kilobytes could decompress to gigabytes.
 */
const DECOMPRESSED_BYTES_MAX = 512 * 1024 * 1024;

/** Compresses a segment in a thread of the runtime, so that other work continues. */
const compress = promisify(zstdCompress);
/** Decompresses a segment in a thread of the runtime, so that other work continues. */
const decompressApart = promisify(zstdDecompress);

/**
 * zstd level of a segment. Compresses 70 MB of clicks a second; from level 1 to 19 the sizes differ by less than 1 %.
 */
const LEVEL = 9;

/** Number of lines in the canonical bytes of an event. */
const LINES = 8;
const LINE_FEED = 10;

export interface Segment {
  readonly header: SegmentHeader;
  /** Content of the file: one zstd frame, with its checksum. */
  readonly bytes: Uint8Array;
}

/** Part of an event store that the sealing of segments reads. */
export interface SealableLog {
  readonly id: string;
  readonly readCanonical: EventStore["readCanonical"];
  readonly readKeys: EventStore["readKeys"];
  readonly hashAt: EventStore["hashAt"];
}

/**
 * Seals the events of a log after the head `after` up to position `to`, in one or several segments. Reads each event
 * once and proves the chain from `after` on. Throws {@link ChainBroken}.
 */
export async function* sealSegments(
  store: SealableLog,
  after: ChainPoint,
  to: number,
  /** Size at which a segment ends: the event that reaches it is the segment's last. */
  bytesMax: number = SEGMENT_BYTES_MAX,
): AsyncGenerator<Segment, void, void> {
  let pending = startSegment(after);
  for await (const events of store.readCanonical({ from: after.position + 1, to })) {
    for (const canonical of events) {
      pending.add(canonical);
      if (pending.bytes < bytesMax) continue;
      yield await seal(store, pending);
      pending = startSegment(pending.end());
    }
  }
  if (pending.bytes > 0) yield await seal(store, pending);
  if (pending.end().position !== to) throw new ChainBroken(pending.end().position + 1);
}

type Pending = ReturnType<typeof startSegment>;

/** Begins a segment, which collects the events that follow the event `after`. */
function startSegment(after: ChainPoint) {
  const chain = createChain(after.hash);
  const tree = createTreeRange(after.position);
  const lines: Uint8Array[] = [];
  let bytes = 0;
  let { position } = after;
  return {
    after,
    tree,
    lines,
    get bytes() {
      return bytes;
    },
    add(canonical: Uint8Array): void {
      position += 1;
      chain.add(canonical);
      tree.add(hashLeaf(canonical));
      lines.push(canonical);
      bytes += canonical.length;
    },
    end: () => ({ position, hash: chain.hash() }),
  };
}

async function seal(store: SealableLog, { after, tree, lines, end }: Pending): Promise<Segment> {
  const { position: last, hash: reached } = end();
  if ((await store.hashAt(last)) !== reached) throw new ChainBroken(last);
  const first = after.position + 1;
  const keys: string[] = [];
  for await (const found of store.readKeys({ from: first, to: last })) keys.push(...found.map(formatKey));
  const header: SegmentHeader = {
    format: FORMAT,
    log: store.id,
    first,
    last,
    from: timeOf(lines[0]!),
    until: timeOf(lines.at(-1)!),
    keys: keys.length,
    before: after.hash,
    hash: reached,
    tree: formatTree(tree),
  };
  const feed = Buffer.of(LINE_FEED);
  const body = Buffer.concat([
    Buffer.from(`${JSON.stringify(header)}\n`),
    ...lines.flatMap((line) => [line, feed]),
    Buffer.from(keys.map((key) => `${key}\n`).join("")),
  ]);
  const params = { [constants.ZSTD_c_compressionLevel]: LEVEL, [constants.ZSTD_c_checksumFlag]: 1 };
  return { header, bytes: await compress(body, { params }) };
}

function formatTree(tree: TreeRange): readonly string[] {
  return tree.nodes().map((node) => Buffer.from(node.hash).toString("hex"));
}

function formatKey({ key, digest, first, last, version }: StoredKey): string {
  return JSON.stringify([key, digest, first, last, version]);
}

function timeOf(canonical: Uint8Array): string {
  return new Date(Number(Buffer.from(canonical).toString("utf8").split("\n", 6)[5])).toISOString();
}

/** Creates the computation of a hash chain that continues from the hash `before`, in hex. */
export function createChain(before: string): {
  readonly add: (canonical: Uint8Array) => void;
  readonly hash: () => string;
} {
  let previous: Uint8Array = Buffer.from(before, "hex");
  return {
    add: (canonical: Uint8Array) => void (previous = hash("sha256", Buffer.concat([previous, canonical]), "buffer")),
    hash: () => Buffer.from(previous).toString("hex"),
  };
}

/** A verified segment. */
export interface OpenedSegment extends Omit<Segment, "bytes"> {
  readonly tree: TreeRange;
  readonly keys: readonly StoredKey[];
  /**
   * Yields the segment's events as they were stored, neither upcast nor checked. Throws {@link SegmentDamaged} for an
   * event that is not JSON.
   */
  events(): Iterable<Recorded<NewEvent>>;
  /** The canonical bytes of the segment's events. */
  readonly canonical: readonly Buffer[];
  /** The leaves of the segment's events in the Merkle tree. */
  readonly leaves: readonly Uint8Array[];
}

/** Parts of a segment that was read and not verified. */
export interface ReadSegment extends Omit<Segment, "bytes"> {
  readonly keys: readonly StoredKey[];
  readonly canonical: readonly Buffer[];
}

/**
 * Reads a segment that follows the head `after` of a log, and proves that it holds the events that its header
 * describes. Throws {@link SegmentDamaged}, also if it exceeds `bytesMax` decompressed. The caller checks the file's
 * hash.
 */
export function openSegment(
  file: Uint8Array,
  log: string,
  after: ChainPoint,
  bytesMax: number = DECOMPRESSED_BYTES_MAX,
): OpenedSegment {
  const { header, canonical, keys } = parseSegment(decompress(file, bytesMax));
  if (header.log !== log) throw new SegmentDamaged(`it is of the log ${header.log}`);
  if (header.first !== after.position + 1 || header.before !== after.hash) {
    throw new SegmentDamaged(`it follows on position ${header.first - 1}, and ${after.position} is the one before it`);
  }
  const chain = createChain(after.hash);
  const tree = createTreeRange(after.position);
  const hashes: string[] = [];
  const leaves: Uint8Array[] = [];
  for (const event of canonical) {
    const leaf = hashLeaf(event);
    chain.add(event);
    tree.add(leaf);
    leaves.push(leaf);
    hashes.push(chain.hash());
  }
  if (chain.hash() !== header.hash || formatTree(tree).join() !== header.tree.join()) {
    throw new SegmentDamaged("its events do not have the hashes that it names");
  }
  return {
    header,
    tree,
    keys,
    canonical,
    leaves,
    *events() {
      for (const [index, event] of canonical.entries()) yield readEvent(event, hashes[index]!);
    },
  };
}

/**
 * Decompresses a segment in a thread of the runtime, then parses it on the calling thread. Throws {@link
 * SegmentDamaged}.
 */
export async function readSegment(file: Uint8Array, bytesMax: number): Promise<ReadSegment> {
  return parseSegment(await decompressApart(file, { maxOutputLength: bytesMax }).catch(refuseFrame));
}

/** Parses a decompressed segment. Throws {@link SegmentDamaged}. */
function parseSegment(decompressed: Buffer): ReadSegment {
  const text = createLineReader(decompressed);
  const header = parseHeader(text.take(1));
  const canonical: Buffer[] = [];
  for (let position = header.first; position <= header.last; position += 1) canonical.push(text.take(LINES));
  const keys: StoredKey[] = [];
  while (keys.length < header.keys) keys.push(parseKey(text.take(1)));
  return { header, canonical, keys };
}

function decompress(file: Uint8Array, bytesMax: number): Buffer {
  try {
    return zstdDecompressSync(file, { maxOutputLength: bytesMax });
  } catch (cause) {
    return refuseFrame(cause);
  }
}

function refuseFrame(cause: unknown): never {
  const isTooLarge = cause instanceof Error && "code" in cause && cause.code === "ERR_BUFFER_TOO_LARGE";
  const reason = isTooLarge ? "it decompresses to more than a segment holds" : "it does not decompress";
  throw new SegmentDamaged(reason, { cause });
}

/** Takes the next line, or several at once, without the line feed at the end. */
function createLineReader(text: Buffer) {
  let start = 0;
  return {
    take(lines: number): Buffer {
      let end = start - 1;
      for (let line = 0; line < lines; line += 1) {
        end = text.indexOf(LINE_FEED, end + 1);
        if (end === -1) throw new SegmentDamaged("it ends too early");
      }
      const taken = text.subarray(start, end);
      start = end + 1;
      return taken;
    },
  };
}

function parseHeader(line: Buffer): SegmentHeader {
  const header = parseLine(line);
  if (isHeader(header)) return header;
  throw new SegmentDamaged("it is no segment that this version reads");
}

const HASH = /^[0-9a-f]{64}$/;

function isHeader(value: unknown): value is SegmentHeader {
  const header = (value ?? {}) as Readonly<Record<keyof SegmentHeader, unknown>>;
  const { format, log, first, last, from, until, keys, before, hash: end, tree } = header;
  const areTexts = [log, from, until].every((text) => typeof text === "string");
  const areHashes = [before, end].every((text) => typeof text === "string" && HASH.test(text));
  const isTree = Array.isArray(tree) && tree.every((node) => typeof node === "string");
  const isRange = isCount(first) && isCount(last) && isCount(keys) && first >= 1 && last >= first;
  return format === FORMAT && areTexts && areHashes && isTree && isRange;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function parseKey(line: Buffer): StoredKey {
  const parsed = parseLine(line);
  const [key, digest, first, last, version] = (Array.isArray(parsed) ? parsed : []) as unknown[];
  const isKey = typeof key === "string" && typeof digest === "string";
  if (isKey && isCount(first) && isCount(last) && isCount(version)) return { key, digest, first, last, version };
  throw new SegmentDamaged("an idempotency key in it cannot be read");
}

/** Parses a line as JSON; undefined if it is not JSON. */
function parseLine(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString("utf8"));
  } catch {
    return undefined;
  }
}

/** Parses an event from its canonical bytes. Throws {@link SegmentDamaged} if it cannot be read. */
export function readEvent(canonical: Buffer, hash: string): Recorded<NewEvent> {
  try {
    return toEvent(canonical, hash);
  } catch (cause) {
    const [position] = canonical.toString("utf8").split("\n", 1);
    throw new SegmentDamaged(`its event ${position} cannot be read`, { cause });
  }
}

function toEvent(canonical: Buffer, hash: string): Recorded<NewEvent> {
  const lines = canonical.toString("utf8").split("\n");
  const [position, stream, version, id, type, timeMs, data, meta] = lines as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  return {
    position: Number(position),
    stream,
    version: Number(version),
    id,
    type,
    time: new Date(Number(timeMs)).toISOString(),
    data: JSON.parse(data) as unknown,
    meta: JSON.parse(meta) as unknown,
    hash,
  };
}
