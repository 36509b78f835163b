import { hash } from "node:crypto";
import { SegmentDamaged } from "../errors.ts";
import { openSegment, type OpenedSegment } from "./seal-and-open-segments.ts";
import type { ChainPoint } from "../event-store-interface.ts";
import { OPENED_BYTES_MAX } from "./segment-cache.ts";
import { toFields } from "./read-segments-and-database.ts";

/**
 * Summary of a segment's file that {@link proveSegment} has verified against the log's hash chain: header, size, hash,
 * number of events of each type, and streams.
 */
export interface ProvedSegment {
  readonly header: OpenedSegment["header"];
  /** Size of the segment's file, in bytes. */
  readonly bytes: number;
  /** Hash of the segment's file: SHA-256, 64 hex digits. */
  readonly sha256: string;
  readonly types: Readonly<Record<string, number>>;
  /** Lowest position for which the segment holds an idempotency key; 0 if it holds none. */
  readonly keysFrom: number;
  /**
   * Streams of the segment. For each, the version of its first event here, and the version and position of its last
   * one.
   */
  readonly streams: readonly (readonly [stream: string, first: number, version: number, position: number])[];
}

/**
 * Proves that a file is a segment of that log that follows `after`: its hashes fit, times never fall, and no version of
 * a stream is missing. Throws {@link SegmentDamaged}.
 */
export function proveSegment(file: Uint8Array, log: string, after: ChainPoint): ProvedSegment {
  const { header, canonical, keys } = openSegment(file, log, after, OPENED_BYTES_MAX);
  const types: Record<string, number> = Object.create(null) as Record<string, number>;
  const streams = new Map<string, [first: number, version: number, position: number]>();
  let previousTime = -Infinity;
  for (const [index, event] of canonical.entries()) {
    const [position, stream, version, , type, time] = toFields(event);
    const refuse = (why: string): never => {
      throw new SegmentDamaged(`position ${header.first + index}: ${why}`);
    };
    if (Number(position) !== header.first + index) refuse("another position stands there");
    if (Number(time) < previousTime) refuse("the time is before that of its predecessor");
    previousTime = Number(time);
    types[type] = (types[type] ?? 0) + 1;
    const known = streams.get(stream);
    if (known === undefined) streams.set(stream, [Number(version), Number(version), Number(position)]);
    else if (Number(version) !== known[1] + 1) refuse(NOT_NEXT);
    else streams.set(stream, [known[0], Number(version), Number(position)]);
  }
  return {
    header,
    bytes: file.length,
    sha256: hash("sha256", file, "hex"),
    types,
    keysFrom: keys.reduce((lowest, { last }) => Math.min(lowest || last, last), 0),
    streams: [...streams].map(([stream, place]) => [stream, ...place]),
  };
}

export const NOT_NEXT = "the version does not follow on the one before it in its stream";
