/** True if long tests try all of their cases, and not only those for which a run of all test files has time. */
export const isWhole = process.env["FAULTS_WHOLE"] === "1";

/** Share of the random cases that a run of all test files tries. */
const PART = 1 / 10;

/**
 * Returns how many random cases to try, or how many of their situations to expect: `whole` with the fault tests, a part
 * in a run of all files.
 */
export function countCases(whole: number): number {
  return isWhole ? whole : Math.ceil(whole * PART);
}
