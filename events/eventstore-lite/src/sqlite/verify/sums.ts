/**
 * Sums over events, wrapping at 32 bits: number, positions, types, types × positions, places in streams, places ×
 * positions. They tell two walks apart after an accident; against intent an index protects nothing.
 */
export type Sums = Uint32Array;

export function newSums(): Sums {
  return new Uint32Array(6);
}

/**
 * Takes the lower 24 bits of every number, so that no product or sum exceeds SQLite's integers for any stored value.
 */
const MASK = 0xff_ff_ff;

/** Combines a stream and a version in one number. */
const STREAM_FACTOR = 1_021;

/** SQL that adds what {@link addTo} adds, for an event e. */
export const SUMS_BY_TYPE: string = summed("e.type");
export const SUMS_BY_PLACE: string = summed(`(${masked("e.stream")} * ${STREAM_FACTOR} + ${masked("e.version")})`);

function masked(sql: string): string {
  return `(${sql} & ${MASK})`;
}

/**
 * Returns SQL for the number, the positions, the keys and the products of both, as one text; all zeros for no events.
 */
function summed(key: string): string {
  const values = ["e.position", key, `(${masked("e.position")} * ${masked(key)})`];
  const sums = values.map((value) => `ifnull(sum(${masked(value)}), 0) & 0xffffffff`);
  return ["count(*) & 0xffffffff", ...sums].map((sum) => `(${sum})`).join(" || ' ' || ");
}

/** Adds one event; runs for every event that is verified. */
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

/** Formats sums like {@link SUMS_BY_TYPE}. */
export function byType([count, positions, types, products]: Sums): string {
  return `${count} ${positions} ${types} ${products}`;
}

/** Formats sums like {@link SUMS_BY_PLACE}. */
export function byPlace([count, positions, , , places, products]: Sums): string {
  return `${count} ${positions} ${places} ${products}`;
}
