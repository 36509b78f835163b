import type { Prices } from "./network.ts";

/**
 * What X charges, in millionths of a dollar, as https://docs.x.com/x-api/getting-started/pricing said in November 2026:
 * for each thing that an answer returns, our own messages too, and for each message sent. A thing read again on the
 * same UTC day is free, so sums by this table are upper bounds.
 */
export const X_PRICES: Prices = {
  send: 15_000,
  /** Members of a list and followers of others as well. */
  user: 10_000,
  follower: 10_000,
  post: 5_000,
  message: 10_000,
};

/** An "owned read", of the same page: what belongs to the account that owns the developer app, such as its followers. */
const OWNED_READ = 1_000;

/** `accountOwnsApp`: the authorized account owns the developer app. X does not tell, so only the operator can. */
export function xPrices({ accountOwnsApp }: { readonly accountOwnsApp: boolean }): Prices {
  return accountOwnsApp ? { ...X_PRICES, follower: OWNED_READ } : X_PRICES;
}
