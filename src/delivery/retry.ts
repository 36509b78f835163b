import { RETRY_AFTER_MAX_MS } from "../networks/retry-after.ts";

/**
 * Attempts for one dispatch, the first included; then it is a dead letter. Each answer is one, also where the network asks
 * for a wait: of one that asks for two hours each time, the last attempt comes after 14 hours.
 */
export const ATTEMPTS_MAX = 8;

/**
 * Our own seven waits between eight attempts are at most 2 s, 6 s, 20 s, 1 min, 3.5 min, 11 min and 36 min, about an hour
 * together, and half of that on average.
 */
const BASE_MS = 2_000;
const FACTOR = 3.2;

/**
 * How long to wait after failed attempt number `attempt` (1-based), in ms: exponential backoff with full jitter,
 * but never less than the network asked for. `random` is in [0, 1).
 */
export function retryDelayMs(attempt: number, random: number, retryAfterMs: number | undefined): number {
  const ceiling = BASE_MS * FACTOR ** (Math.min(attempt, ATTEMPTS_MAX - 1) - 1);
  const jittered = Math.round(random * ceiling);
  return Math.max(jittered, Math.min(retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
}
