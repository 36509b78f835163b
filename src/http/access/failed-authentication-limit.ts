import { createHmac } from "node:crypto";
import type { Vault } from "../../vault/vault.ts";
import { toNetwork } from "../../platform/ip-address.ts";
import type { Clock } from "../../platform/clock-ids-and-timers.ts";
import { createRateLimit, WINDOW_MS } from "./rate-limit.ts";

/** Maximum number of wrong tokens from one address in a minute that are answered with 401. Further ones get 429. */
const FAILED_AUTHENTICATIONS_PER_MINUTE = 10;

/**
 * Limit on wrong tokens from one address, which decides if a wrong token is answered with 401 or 429. A valid token
 * always passes, because tokens are compared first.
 */
export interface FailureLimit {
  /**
   * Counts one wrong token. Returns the seconds until the address may try again if it had already reached the limit,
   * else undefined.
   */
  fail(address: string): Promise<number | undefined>;
}

/** Counts wrong tokens in memory, for a service that is the only instance of its log. */
export function createFailureLimit(clock: Clock, limit = FAILED_AUTHENTICATIONS_PER_MINUTE): FailureLimit {
  const { take } = createRateLimit(() => limit, clock);
  return { fail: async (address) => take(address) };
}

export interface SharedFailuresDeps {
  readonly claim: Vault["claim"];
  /** Key of the HMAC that replaces addresses in the database, so that its readers learn none. */
  readonly key: Uint8Array;
  readonly clock: Clock;
}

/**
 * Counts wrong tokens across all instances. In the database, an address has `limit` places a minute; each wrong token
 * claims one, and gets 429 if none is free. While the database is unreachable, each instance counts alone.
 */
export function shareFailures(
  { claim, key, clock }: SharedFailuresDeps,
  limit = FAILED_AUTHENTICATIONS_PER_MINUTE,
): FailureLimit {
  const own = createFailureLimit(clock, limit);
  let minute = 0;
  /**
   * By the caller's network: the next of the numbers 1 to `limit`. Each wrong token reserves a number in the database
   * for the current minute. This instance has already tried to reserve all lower numbers.
   */
  let free = new Map<string, number>();

  const takePlace = (network: string): number | undefined => {
    const place = free.get(network) ?? 1;
    if (place > limit) return undefined;
    // The number for the next wrong token is stored before this number is claimed in the database, so that two wrong
    // tokens at the same time claim different numbers of the minute.
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
          // The database cannot be reached, so only this instance's own count limits the address.
          return undefined;
        }
      }
      return Math.max(1, Math.ceil((endsAt - now) / 1000));
    },
  };
}

/**
 * Maximum number of networks of callers for which an instance remembers the next number to claim in the database for a
 * wrong token. With more networks, the instance forgets them all and tries the numbers from 1 again.
 */
const ADDRESSES_MAX = 50_000;
