import { createHmac } from "node:crypto";
import type { Vault } from "../../vault/vault.ts";
import { toNetwork } from "../../platform/ip-address.ts";
import type { Clock } from "../../platform/clock.ts";
import { createRateLimit, WINDOW_MS } from "./rate-limit.ts";

/** Wrong tokens per minute from one address that get 401. Further wrong ones get 429. */
const FAILED_AUTHENTICATIONS_PER_MINUTE = 10;

/** Chooses between 401 and 429 for a wrong token. Every token is compared before, so a valid one always passes. */
export interface FailureLimit {
  /** Counts one wrong token. Returns the seconds to wait if the limit was reached before, else undefined. */
  fail(address: string): Promise<number | undefined>;
}

/** Counts in memory, for a service that is the only instance of its log. */
export function createFailureLimit(clock: Clock, limit = FAILED_AUTHENTICATIONS_PER_MINUTE): FailureLimit {
  const { take } = createRateLimit(() => limit, clock);
  return { fail: async (address) => take(address) };
}

export interface SharedFailuresDeps {
  readonly claim: Vault["claim"];
  /** Hashes the addresses, so that a reader of the database learns none. */
  readonly key: Uint8Array;
  readonly clock: Clock;
}

/**
 * Counts across all instances: each minute has `limit` places per address, and each wrong token claims one. Trying
 * tokens at several instances yields no more 401. While the claims are unreachable, each instance counts for itself.
 */
export function shareFailures(
  { claim, key, clock }: SharedFailuresDeps,
  limit = FAILED_AUTHENTICATIONS_PER_MINUTE,
): FailureLimit {
  const own = createFailureLimit(clock, limit);
  let minute = 0;
  /** The lowest place of each network that may be free. */
  let free = new Map<string, number>();

  const takePlace = (network: string): number | undefined => {
    const place = free.get(network) ?? 1;
    if (place > limit) return undefined;
    // Advanced before the claim, so that concurrent failures try different places.
    free.set(network, place + 1);
    return place;
  };

  return {
    async fail(address) {
      const now = clock();
      const wait = await own.fail(address);
      if (wait !== undefined) return wait;
      if (minute !== Math.floor(now / WINDOW_MS) || free.size >= ADDRESSES_MAX) free = new Map();
      minute = Math.floor(now / WINDOW_MS);
      const endsAt = (minute + 1) * WINDOW_MS;
      const network = toNetwork(address);
      const name = createHmac("sha256", key).update(`${minute} ${network}`).digest("base64url");
      for (let place = takePlace(network); place !== undefined; place = takePlace(network)) {
        try {
          if (await claim(`failed-authentication/${name}/${place}`, endsAt, now)) return undefined;
        } catch {
          // The claim failed, but this instance has counted the failure.
          return undefined;
        }
      }
      return Math.max(1, Math.ceil((endsAt - now) / 1000));
    },
  };
}

/** Networks whose next place is remembered. Beyond this, taken places are tried once more. */
const ADDRESSES_MAX = 50_000;
