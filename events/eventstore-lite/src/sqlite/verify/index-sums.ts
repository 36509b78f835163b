/**
 * Six checksums of events, modulo 2^32: number, positions, types, types × positions, places in streams, places ×
 * positions. If they differ from an index's, the index was damaged by accident; an attacker could change both.
 */
export type Sums = Uint32Array;

export function newSums(): Sums {
  return new Uint32Array(6);
}

/** Mask of the lower 24 bits of a number, so that no product or sum exceeds SQLite's integers for any stored value. */
const MASK = 0xff_ff_ff;

/**
 * Factor by which the number of a stream and a version become one number, for the checksum of the index by stream and
 * version.
 */
const STREAM_FACTOR = 1_021;

/**
 * SQL that sums, over the events `e`, what the index by type must hold: number, positions, types, and types ×
 * positions. {@link addTo} computes the same four checksums event by event.
 */
export const SUMS_BY_TYPE: string = summed("e.type");
export const SUMS_BY_PLACE: string = summed(`(${masked("e.stream")} * ${STREAM_FACTOR} + ${masked("e.version")})`);

function masked(sql: string): string {
  return `(${sql} & ${MASK})`;
}

/**
 * Returns SQL for one text of four sums over the events e: their number, their positions, their keys, and the products
 * of position and key. Without events all four are 0.
 */
function summed(key: string): string {
  const values = ["e.position", key, `(${masked("e.position")} * ${masked(key)})`];
  const sums = values.map((value) => `ifnull(sum(${masked(value)}), 0) & 0xffffffff`);
  return ["count(*) & 0xffffffff", ...sums].map((sum) => `(${sum})`).join(" || ' ' || ");
}

/** Adds one event to the sums; runs for every event that is verified. */
export function addTo(sums: Sums, position: number, type: number, stream: number, version: number): void {
  const at = position & MASK;
  const kind = type & MASK;
  const place = ((stream & MASK) * STREAM_FACTOR + (version & MASK)) & MASK;
  sums[0]! += 1;
  sums[1]! += at;
  sums[2]! += kind;
  sums[3]! += Math.imul(at, kind) & MASK;
  sums[4]! += place;
  sums[5]! += Math.imul(at, place) & MASK;
}

export function addAllTo(sums: Sums, others: Sums): void {
  for (const [at, other] of others.entries()) sums[at]! += other;
}

/**
 * Formats the sums that the verification has added up like a result of the query {@link SUMS_BY_TYPE}, so that both can
 * be compared as texts.
 */
export function byType([count, positions, types, products]: Sums): string {
  return `${count} ${positions} ${types} ${products}`;
}

/**
 * Formats the sums of the verification in the way in which the query {@link SUMS_BY_PLACE} returns its own, so that
 * both can be compared as texts.
 */
export function byPlace([count, positions, , , places, products]: Sums): string {
  return `${count} ${positions} ${places} ${products}`;
}
