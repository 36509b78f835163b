import { RETRY_AFTER_MAX_MS } from "../networks/retry-after.ts";

/**
 * Attempts for one dispatch, the first included; then it is a dead letter. A wait that the network asks for takes none
 * away: of a network that asks for two hours each time, the last attempt comes after 14 hours.
 */
export const ATTEMPTS_MAX = 8;

/** Our own seven waits between eight attempts add up to at most about an hour: 2 s, 6 s, 20 s, 1 min, 3.5 min, 11 min, 36 min. */
const BASE_MS = 2_000;
const FACTOR = 3.2;
const WAIT_MAX_MS = 40 * 60_000;

/**
 * How long to wait after failed attempt number `attempt` (1-based), in ms: exponential backoff with full jitter,
 * but never less than the network asked for. `random` is in [0, 1).
 */
export function retryDelayMs(attempt: number, random: number, retryAfterMs: number | undefined): number {
  const ceiling = Math.min(WAIT_MAX_MS, BASE_MS * FACTOR ** (attempt - 1));
  const jittered = Math.round(random * ceiling);
  return Math.max(jittered, Math.min(retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
}
