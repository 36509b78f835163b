import { Type, type Static } from "@sinclair/typebox";

/** Positions in ascending order. Consecutive ones form a range: its first and its last. */
export const sources = Type.Array(Type.Union([Type.Integer(), Type.Tuple([Type.Integer(), Type.Integer()])]), {
  minItems: 1,
});
export type Sources = Static<typeof sources>;

/** `positions` are distinct, in any order. */
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

/** Visits each position without making an array, which would be wasteful in a fold of millions. */
export function forEachPosition(ranges: Sources, visit: (position: number) => void): void {
  for (const range of ranges) {
    if (typeof range === "number") visit(range);
    else for (let position = range[0]; position <= range[1]; position++) visit(position);
  }
}

/** Returns an array: with a generator, a fold takes half as long again for each position. */
export function positionsOf(ranges: Sources): readonly number[] {
  const positions: number[] = [];
  forEachPosition(ranges, (position) => void positions.push(position));
  return positions;
}
