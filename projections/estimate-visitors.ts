/**
 * This file estimates the number of a link's visitors on a UTC day by a HyperLogLog sketch. A click stores one integer
 * made from a salted hash of its visitor. The salt is deleted after the day, so the integer cannot identify the
 * visitor.
 */

/** Number of registers in the sketch that estimates visitors: 2 KB, and a standard error of 2.3 %. */
export const VISITOR_REGISTERS = 2_048;

/**
 * Number above any rank: a rank is 1 plus the zeros before the first one bit of a visitor's hash. A click holds
 * `register * VISITOR_RANKS + rank`.
 */
export const VISITOR_RANKS = 64;

/** Standard error of an estimate of visitors, as a share of it (Flajolet et al. 2007). */
export const VISITORS_ERROR = 1.04 / Math.sqrt(VISITOR_REGISTERS);

/**
 * The HyperLogLog sketch holds one character for each register. This is the code of the character for a register
 * without visitors; adding a rank to it gives the character for that rank.
 */
const FIRST = "0".charCodeAt(0);

/**
 * HyperLogLog estimate of a link's visitors before the first visitor: one character for each register (counter). A text
 * is valid JSON, and an update copies at most 2 KB.
 */
const NO_VISITORS = "0".repeat(VISITOR_REGISTERS);

/** Returns the sketch with one more visitor. An undefined sketch is empty. An invalid `visitor` changes nothing. */
export function addVisitor(sketch: string = NO_VISITORS, visitor: number): string {
  const register = Math.floor(visitor / VISITOR_RANKS);
  const rank = visitor % VISITOR_RANKS;
  if (!(register >= 0 && register < VISITOR_REGISTERS) || rank <= sketch.charCodeAt(register) - FIRST) return sketch;
  return sketch.slice(0, register) + String.fromCharCode(FIRST + rank) + sketch.slice(register + 1);
}

/**
 * Estimates, rounded, how many visitors were added to a sketch: O. Ertl's improved raw estimator (arXiv:1702.01284,
 * algorithm 4). The original HyperLogLog estimator is biased where it switches to linear counting; this one is not.
 */
export function estimateVisitors(sketch: string): number {
  let sum = 0;
  let empty = 0;
  for (let register = 0; register < VISITOR_REGISTERS; register++) {
    const rank = sketch.charCodeAt(register) - FIRST;
    if (rank === 0) empty++;
    else sum += 2 ** -rank;
  }
  if (empty === VISITOR_REGISTERS) return 0;
  const scale = VISITOR_REGISTERS ** 2 / (2 * Math.LN2);
  return Math.round(scale / (sum + VISITOR_REGISTERS * sigma(empty / VISITOR_REGISTERS)));
}

/** Computes x + x^2 + 2 x^4 + 4 x^8 …, to the last digit; 0 ≤ x < 1. */
function sigma(x: number): number {
  let [sum, power, factor, before] = [x, x, 1, Number.NaN];
  while (sum !== before) {
    before = sum;
    power *= power;
    sum += power * factor;
    factor *= 2;
  }
  return sum;
}
