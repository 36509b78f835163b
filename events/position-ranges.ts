import { Type, type Static } from "@sinclair/typebox";

/**
 * Schema of positions of events in ascending order. Consecutive positions form a range, written as its first and its
 * last one.
 */
export const sources = Type.Array(Type.Union([Type.Integer(), Type.Tuple([Type.Integer(), Type.Integer()])]), {
  minItems: 1,
});
export type Sources = Static<typeof sources>;

/** Converts positions of events to ascending ranges. The positions are distinct, in any order. */
export function sourcesOf(positions: readonly number[]): Sources {
  const ranges: Sources = [];
  let first = NaN;
  let last = NaN;
  for (const position of positions.toSorted((a, b) => a - b)) {
    if (position === last + 1) ranges[ranges.length - 1] = [first, position];
    else ranges.push((first = position));
    last = position;
  }
  return ranges;
}

/**
 * Calls `visit` with each position. Makes no array of them, which would be wasteful in a fold of millions of events.
 */
export function forEachPosition(ranges: Sources, visit: (position: number) => void): void {
  for (const range of ranges) {
    if (typeof range === "number") visit(range);
    else for (let position = range[0]; position <= range[1]; position++) visit(position);
  }
}

/**
 * Returns all positions as an array. With a generator instead, folds would take 1.5 times as long for each position.
 */
export function positionsOf(ranges: Sources): readonly number[] {
  const positions: number[] = [];
  forEachPosition(ranges, (position) => void positions.push(position));
  return positions;
}

export function countPositions(ranges: Sources): number {
  return ranges.reduce<number>((sum, range) => sum + (typeof range === "number" ? 1 : range[1] - range[0] + 1), 0);
}
