/**
 * What some events add up to, by which two walks over the same events are told apart unless what differs was chosen to
 * have the same sums: an accident is found, and against intent an index protects nothing. Numbers wrap at 32 bits:
 * how many, their positions; their types, and these times the positions; the same of their places in their streams.
 */
export type Sums = Uint32Array;

export function newSums(): Sums {
  return new Uint32Array(6);
}

/** Of every number the lower 24 bits: no product and no sum leaves SQLite's integers, whatever is stored. */
const MASK = 0xff_ff_ff;

/** Makes one number of a stream and a version. */
const STREAM_FACTOR = 1_021;

/** The SQL of what {@link addTo} adds, of an event e. */
export const SUMS_BY_TYPE: string = summed("e.type");
export const SUMS_BY_PLACE: string = summed(`(${masked("e.stream")} * ${STREAM_FACTOR} + ${masked("e.version")})`);

function masked(sql: string): string {
  return `(${sql} & ${MASK})`;
}

/** How many, their positions, the keys, and the products of both, as one text; of no events it is all zeros. */
function summed(key: string): string {
  const values = ["e.position", key, `(${masked("e.position")} * ${masked(key)})`];
  const sums = values.map((value) => `ifnull(sum(${masked(value)}), 0) & 0xffffffff`);
  return ["count(*) & 0xffffffff", ...sums].map((sum) => `(${sum})`).join(" || ' ' || ");
}

/** Runs for every event that is verified. */
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

/** As {@link SUMS_BY_TYPE} gives them. */
export function byType([count, positions, types, products]: Sums): string {
  return `${count} ${positions} ${types} ${products}`;
}

/** As {@link SUMS_BY_PLACE} gives them. */
export function byPlace([count, positions, , , places, products]: Sums): string {
  return `${count} ${positions} ${places} ${products}`;
}
