import { isBlankWord } from "./cell-notes.ts";

/** Reason why a value is no valid id or handle. */
interface Faulty {
  readonly fault: string;
}

const ID = /^[1-9][0-9]{0,18}$/;

/** Matches a long number as a spreadsheet rounds it, in scientific notation; in some languages with a comma. */
const SCIENTIFIC = /^\d(?:[.,]\d+)?e\+?\d+$/i;

const WAS_ROUNDED = "and its digits are lost; format the column as text and export again";

/**
 * Matches a number that a spreadsheet rounded: it keeps 15 digits and writes zeros for the rest. With 18 or more
 * digits, a real id hardly ever looks so.
 */
const ROUNDED = /^\d{15}0{3,4}$/;

const HANDLE = /^[@＠]?([A-Za-z0-9_]{1,15})$/;

/** Matches a plain id or handle, as most are: no character has to be removed from it. */
const PLAIN = /^@?[A-Za-z0-9_]+$/;

const PROFILE =
  /^(?:https?:\/\/)?(?:(?:www|mobile|m)\.)?(?:x|twitter)\.com\/(?:#!\/)?@?([A-Za-z0-9_]{1,15})(?:[/?#].*)?$/i;

/** First path segments of X addresses that are pages of X and not profiles of people. */
const PAGES = new Set(
  "compose explore hashtag home i intent login messages notifications privacy search settings share signup tos".split(
    " ",
  ),
);

/** Returns the id as digits; undefined for a blank text. */
export function readId(raw: string): string | Faulty | undefined {
  const value = visible(raw);
  if (value === "") return undefined;
  if (SCIENTIFIC.test(value)) return { fault: `id ${value}: a spreadsheet has rounded this id ${WAS_ROUNDED}` };
  if (ROUNDED.test(value)) {
    return {
      fault: `id ${value} ends in zeros, as if a spreadsheet had rounded it; it may be another person's: give the username instead`,
    };
  }
  return ID.test(value) ? value : { fault: "id is not a number of 1 to 19 digits" };
}

/**
 * Returns the handle from `@handle`, `handle` or the address of a profile, in its original case; undefined for a blank
 * text.
 */
export function readHandle(raw: string): string | Faulty | undefined {
  const value = visible(raw);
  if (value === "") return undefined;
  const handle = HANDLE.exec(value)?.[1];
  if (handle !== undefined) return handle;
  // Without a `+`, the value may be a handle, such as 1e10.
  if (SCIENTIFIC.test(value)) return { fault: `username ${value}: a spreadsheet has rounded a number ${WAS_ROUNDED}` };
  const profile = PROFILE.exec(value)?.[1];
  if (profile === undefined || PAGES.has(profile.toLowerCase())) {
    return {
      fault: "username is neither a handle (1 to 15 letters, digits, underscores) nor the address of an X profile",
    };
  }
  return profile;
}

/**
 * Reads a handle in a row of a list. Refuses a program's word for an empty value after `@` or in an address (`@null`):
 * an account of that name exists, but is not the recipient.
 */
export function readListedHandle(raw: string): string | Faulty | undefined {
  const handle = readHandle(raw);
  if (typeof handle !== "string" || !isBlankWord(handle, false)) return handle;
  const value = visible(raw);
  return {
    fault: `username ${value} is a program's word for an empty cell; if it is a real handle, give the id instead`,
  };
}

/**
 * Removes invisible characters, which come with text copied from web pages, and the apostrophe or formula (`'123`,
 * `="123"`) that keeps a spreadsheet from changing the cell.
 */
function visible(raw: string): string {
  if (PLAIN.test(raw)) return raw;
  const value = raw.replace(/[\p{Default_Ignorable_Code_Point}\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu, "").trim();
  return value
    .replace(/^="(.*)"$/, "$1")
    .replace(/^['‘’](.*?)['‘’]?$/, "$1")
    .trim();
}
