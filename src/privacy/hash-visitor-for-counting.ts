// Computes the number by which a visitor counts in a day's sketch; projections/estimate-visitors.ts estimates from it.
import { createHmac } from "node:crypto";
import { andThen, type Awaitable } from "eventstore-lite";
import { VISITOR_RANKS, VISITOR_REGISTERS } from "../../projections/estimate-visitors.ts";
import type { Clock } from "../platform/clock-ids-and-timers.ts";
import { createDayKeys } from "./daily-encryption-keys.ts";
import type { KeyStore } from "./key-store.ts";

/**
 * Returns the number by which a link's HyperLogLog sketch counts a visitor today: `register * VISITOR_RANKS + rank`. It
 * is the same all day, but differs by link and by day. Undefined if the key store provides no salt now.
 */
export type PlaceVisitor = (
  link: string,
  visitor: { readonly ip: string | undefined; readonly userAgent: string | undefined },
) => Awaitable<number | undefined>;

export function createVisitorSketch(keys: KeyStore, clock: Clock): PlaceVisitor {
  const days = createDayKeys(keys);
  /** Returns the salt of the day: a key that all instances share, and that is deleted when the day is over. */
  const salt = (): Awaitable<Uint8Array | undefined> => {
    const found = days.of("visitor", clock());
    if (found !== undefined) return found.key;
    return days.prepare("visitor", clock()).then(salt, () => undefined);
  };
  return (link, { ip, userAgent }) =>
    andThen(salt(), (key) => {
      if (key === undefined) return undefined;
      const digest = createHmac("sha256", key)
        .update(JSON.stringify([link, ip, userAgent]))
        .digest();
      const rank = 1 + Math.min(Math.clz32(digest.readUInt32BE(4)), VISITOR_RANKS - 2);
      return (digest.readUInt32BE(0) % VISITOR_REGISTERS) * VISITOR_RANKS + rank;
    });
}
