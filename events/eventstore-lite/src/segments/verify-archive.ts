import { availableParallelism } from "node:os";
import { isDeepStrictEqual } from "node:util";
import type { Fault } from "../sqlite/verify/check-result-types.ts";
import type { StreamList, Catalogue, SegmentEntry } from "./catalogue.ts";
import { describe } from "./segment-cache.ts";
import { NOT_NEXT, type ProvedSegment } from "./validate-segment.ts";
import { type Proof, proveApart } from "./validate-in-thread.ts";
import type { SegmentReader } from "./segment-storage.ts";

/**
 * Number of segments that one thread proves before it ends. They take some seconds; starting the thread takes a
 * hundredth of that.
 */
const PART_SEGMENTS = 32;

/** Maximum number of threads at the same time. More would wait for the disk and for each other. */
const PROVERS_MAX = 8;

export interface VerifyArchiveOptions {
  /** Id of the log whose archive is verified. */
  readonly log: string;
  /** First position to verify. The segments that hold the positions of the range are proved whole. */
  readonly from: number;
  /** Last position to verify. */
  readonly to: number;
  readonly threads: number;
  /** The verification calls this with the number of events of each segment that it has found whole. */
  readonly onChecked: (events: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Proves the segments that hold events of a range, and the database's records of them; for the whole archive also its
 * records of streams. Returns the first segment that is missing or damaged, by name.
 */
export async function verifyArchive(
  catalogue: Catalogue,
  table: StreamList,
  storage: SegmentReader,
  { log, from, to, threads, onChecked, signal }: VerifyArchiveOptions,
): Promise<Fault | undefined> {
  const [first, last] = [catalogue.locate(from), catalogue.locate(to)];
  const entries = catalogue.entries().slice(first, last + 1);
  const after = (index: number) => ({ position: entries[index]!.first - 1, hash: catalogue.hashBefore(first + index) });
  const pick = ({ name, bytes, sha256, ...entry }: SegmentEntry) => {
    return { name, sealed: { bytes, sha256 }, events: Math.min(to, entry.last) - Math.max(from, entry.first) + 1 };
  };
  const proofs: Proof[] = [];
  let next = 0;

  async function work(): Promise<void> {
    while (next < entries.length && !proofs.some((proof) => "damage" in proof)) {
      const start = next;
      next += PART_SEGMENTS;
      const segments = entries
        .slice(start, next)
        .map((entry, index) => ({ ...pick(entry), after: after(start + index) }));
      const part = await proveApart(storage, { log, segments }, { onProved: onChecked, signal });
      for (const [index, proof] of part.entries()) proofs[start + index] = proof;
    }
  }

  await Promise.all(Array.from({ length: Math.min(threads, availableParallelism(), PROVERS_MAX) }, work));
  const streams = new Map<string, StreamEnd>();
  for (const [index, entry] of entries.entries()) {
    const reason = faultOf(entry, proofs[index]) ?? addStreams(streams, proofs[index] as ProvedSegment, first === 0);
    if (reason !== undefined) return { position: entry.first, reason: `${describe(entry)}: ${reason}` };
  }
  return first === 0 && last === catalogue.entries().length - 1 ? compareStreams(table, streams) : undefined;
}

function faultOf(entry: SegmentEntry, proof: Proof | undefined): string | undefined {
  if (proof === undefined) return "it was not proved";
  if ("damage" in proof) return proof.damage;
  const { header, types, keysFrom } = proof;
  const isListed =
    header.last === entry.last &&
    header.hash === entry.hash &&
    keysFrom === entry.keysFrom &&
    Date.parse(header.from) === entry.firstTime &&
    Date.parse(header.until) === entry.lastTime &&
    isDeepStrictEqual({ ...types }, entry.types);
  return isListed ? undefined : "it holds other events than the log says";
}

/** The end of a stream in the segments examined so far. */
interface StreamEnd {
  version: number;
  position: number;
  segments: number;
}

/**
 * Adds a segment's streams to those examined so far, and returns a fault if a version is missing. `isFromStart`: the
 * first segment is the log's first, so each stream has to begin with version 1.
 */
function addStreams(
  streams: Map<string, StreamEnd>,
  { streams: found }: ProvedSegment,
  isFromStart: boolean,
): string | undefined {
  for (const [stream, first, version, position] of found) {
    const known = streams.get(stream);
    if (first !== (known?.version ?? (isFromStart ? 0 : first - 1)) + 1) return `${NOT_NEXT}: ${stream}`;
    streams.set(stream, { version, position, segments: (known?.segments ?? 0) + 1 });
  }
  return undefined;
}

/**
 * Compares the database's records of archived streams with the segments. They matter because appends continue from the
 * versions in them, and readers use them to find archived events.
 */
async function compareStreams(table: StreamList, streams: ReadonlyMap<string, StreamEnd>): Promise<Fault | undefined> {
  let compared = 0;
  for (let name = ""; ;) {
    const rows = await table.streamsAfter(name);
    for (const { stream, version, position, segments } of rows) {
      const found = streams.get(stream);
      compared += 1;
      if (found?.version !== version || found.position !== position || found.segments !== segments)
        return { position: found?.position ?? 1, reason: `the archived events of ${stream} are not found by its name` };
    }
    if (rows.length === 0) break;
    name = rows.at(-1)!.stream;
  }
  if (compared === streams.size) return undefined;
  return { position: 1, reason: "archived events of a stream are not found by its name" };
}
