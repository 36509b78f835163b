import { oneLine, truncate } from "./plain-text.ts";

/** Enough to see what a network complains of; details are stored with events for ever. */
const EXCERPT_UNITS_MAX = 200;

/**
 * What looks like a value rather than a word: text in brackets or quotes (networks show the offending value so),
 * handles and addresses, long numbers, anything of 20 characters without a space.
 */
const VALUES = /\[[^\]]*\]|"[^"]*"|[\w.+-]{0,64}@[\w.-]+|\d{5,}|[\w.~+/:=%-]{20,}/g;

/** A network's own words, fit for the log: one short line without credentials, ids or names of people. */
export function excerpt(text: string): string {
  // Cut before matching as well: the answer may be 64 KB of anything.
  return truncate(oneLine(text.slice(0, 10 * EXCERPT_UNITS_MAX)).replace(VALUES, "[…]"), EXCERPT_UNITS_MAX);
}
