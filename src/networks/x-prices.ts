import type { Prices } from "./network.ts";

/**
 * What X charges, in millionths of a dollar, as https://docs.x.com/x-api/getting-started/pricing said in 2026-11:
 * for each thing that an answer returns, our own messages too, and for each message sent. A thing read again on the
 * same UTC day is free, so sums by this table are upper bounds.
 */
export const X_PRICES: Prices = {
  send: 15_000,
  /** Members of a list and followers of others as well. */
  user: 10_000,
  /** An "owned read", as what belongs to the account that asks is called. */
  follower: 1_000,
  post: 5_000,
  message: 10_000,
};
