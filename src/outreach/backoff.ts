/** The six waits between seven attempts take up to seven minutes, half of that on average: X's outages are mostly shorter. */
const BASE_MS = 2_000;
const FACTOR = 4;
const WAIT_MAX_MS = 120_000;

/**
 * How long to wait after failed attempt number `attempt` (1-based), in ms: exponential backoff with full jitter. `random`
 * is from 0 to 1.
 */
export function backoffMs(attempt: number, random: number): number {
  return Math.round(random * Math.min(WAIT_MAX_MS, BASE_MS * FACTOR ** (attempt - 1)));
}
