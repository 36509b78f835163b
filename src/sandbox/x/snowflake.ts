/** When X began to number posts so: ms since the epoch. */
const EPOCH_MS = 1_288_834_974_657n;

/** Bits below the time: machine and sequence. */
const SEQUENCE_BITS = 22n;

/** An id as X makes them: it grows with time, and tells it. `sequence`: tells apart what was made in the same ms. */
export function snowflakeAt(time: number, sequence: number): string {
  const since = BigInt(Math.floor(time)) - EPOCH_MS;
  return String((since << SEQUENCE_BITS) + BigInt(sequence));
}
