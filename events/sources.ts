import { Type, type Static } from "@sinclair/typebox";

/** Positions in ascending order; those that follow on each other are one range: its first and its last. */
export const sources = Type.Array(Type.Union([Type.Integer(), Type.Tuple([Type.Integer(), Type.Integer()])]), {
  minItems: 1,
});
export type Sources = Static<typeof sources>;

/** `positions`: distinct, in any order. */
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

/** Without an array, which a fold of millions would make for nothing. */
export function forEachPosition(ranges: Sources, visit: (position: number) => void): void {
  for (const range of ranges) {
    if (typeof range === "number") visit(range);
    else for (let position = range[0]; position <= range[1]; position++) visit(position);
  }
}

/** An array: a generator takes a fold half as long again for each position. */
export function positionsOf(ranges: Sources): readonly number[] {
  const positions: number[] = [];
  forEachPosition(ranges, (position) => void positions.push(position));
  return positions;
}
