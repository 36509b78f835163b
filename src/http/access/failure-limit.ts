import { createHmac } from "node:crypto";
import type { Vault } from "../../vault/vault.ts";
import { toNetwork } from "../../platform/ip-address.ts";
import type { Clock } from "../../platform/clock.ts";
import { createRateLimit, WINDOW_MS } from "./rate-limit.ts";

/** Wrong tokens a minute from one address that get 401; further wrong ones get 429. */
const FAILED_AUTHENTICATIONS_PER_MINUTE = 10;

/** Chooses between 401 and 429 for a wrong token. Every token is compared before, so a valid one always passes. */
export interface FailureLimit {
  /** Counts one wrong token; answers the seconds to wait when the limit was passed before it. */
  fail(address: string): Promise<number | undefined>;
}

/** Counts in memory: for a service that is the only one of its log. */
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
 * Counts with all instances: each minute has so many places for an address, and a wrong token claims one of them. An
 * address that tries tokens at several instances gets no more 401. While the claims are out of reach, each instance
 * counts for itself.
 */
export function shareFailures(
  { claim, key, clock }: SharedFailuresDeps,
  limit = FAILED_AUTHENTICATIONS_PER_MINUTE,
): FailureLimit {
  const own = createFailureLimit(clock, limit);
  let minute = 0;
  /** Of each network the lowest place that may be free. */
  let free = new Map<string, number>();

  const takePlace = (network: string): number | undefined => {
    const place = free.get(network) ?? 1;
    if (place > limit) return undefined;
    // At once: of two that fail together each tries another place.
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
          // It was counted here.
          return undefined;
        }
      }
      return Math.max(1, Math.ceil((endsAt - now) / 1000));
    },
  };
}

/** Networks of which a place is remembered; past it, places that are taken are tried once more. */
const ADDRESSES_MAX = 50_000;
