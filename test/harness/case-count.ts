/** True if long tests try all of their cases, and not only those for which a run of all test files has time. */
export const isWhole = process.env["FAULTS_WHOLE"] === "1";

/** Share of the random cases that a run of all test files tries. */
const PART = 1 / 10;

/** Returns how many random cases to try: `whole` with the fault tests, a part in a run of all files. */
export function countCases(whole: number): number {
  return isWhole ? whole : Math.ceil(whole * PART);
}

/**
 * If only some of the cases are tried, this share of the situations to be expected must occur: the fewer the cases, the
 * more their number varies by chance.
 */
const LEAST = 1 / 4;

/** Returns how many situations the tried cases must contain if all cases contain at least `whole`. */
export function countSituations(whole: number): number {
  return isWhole ? whole : Math.floor(whole * PART * LEAST);
}
