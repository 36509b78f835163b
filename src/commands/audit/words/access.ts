import type { DataOf } from "../../../../events/catalog.ts";

/** Sentences for what is recorded of who gets in. */
export const ACCESS_WORDS = {
  AuthenticationsFailed: ({ address, addresses, failed, turned_away }: DataOf<"AuthenticationsFailed">) => {
    const who = address ?? `${addresses} ${addresses === 1 ? "address" : "addresses"}`;
    const tokens = `${failed} wrong ${failed === 1 ? "token" : "tokens"}`;
    return turned_away === 0 ? `${who} tried ${tokens}` : `${who} tried ${tokens}; turned away ${turned_away} times`;
  },
  KeyRotated: ({ from, to }: DataOf<"KeyRotated">) => `the master key ${from} was replaced by ${to}`,
};
