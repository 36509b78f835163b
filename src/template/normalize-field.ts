/** Maximum length of a template field's name. A longer name is a sentence that slipped into the header row. */
const FIELD_NAME_CHARS_MAX = 64;

const RESERVED = new Set(["__proto__", "constructor", "prototype"]);

/**
 * Names and values in normal form match these patterns. Nearly all do, and then need no further work, which matters
 * when all recipients are counted.
 */
const NORMAL_NAME = /^[a-z0-9_-]+(?: [a-z0-9_-]+)*$/;
const CLEAN_VALUE = /^[!-~](?:[ -~]*[!-~])?$/;

/**
 * Normalises the name of a column or of a placeholder (without its braces), so that ` First  Name ` and `first name`
 * are equal. Unicode is composed, because two editors may write the same `é` differently.
 */
export function fieldName(raw: string): string {
  if (NORMAL_NAME.test(raw)) return raw;
  return raw.normalize("NFC").trim().replace(/\s+/gu, " ").toLowerCase();
}

/** Returns what is wrong with a template field's name, undefined if nothing is. */
export function fieldNameFault(name: string): string | undefined {
  if (name.length > FIELD_NAME_CHARS_MAX) return `a field name has more than ${FIELD_NAME_CHARS_MAX} characters`;
  return RESERVED.has(name) ? `the field name ${name} is reserved` : undefined;
}

/**
 * Cleans the value of a template field: replaces line breaks and tabs by spaces, and removes other control characters
 * and those that turn the direction of writing. Undefined if nothing visible is left.
 */
export function cleanValue(value: string): string | undefined {
  if (CLEAN_VALUE.test(value)) return value;
  const cleaned = value
    .toWellFormed()
    .replace(/[\t\n\v\f\r\u0085\u2028\u2029]+/g, " ")
    .replace(/[\p{Cc}\u200E\u200F\u202A-\u202E\u2066-\u2069\uFEFF]/gu, "")
    .trim();
  return /^[\s\p{Default_Ignorable_Code_Point}\u2800]*$/u.test(cleaned) ? undefined : cleaned;
}

/** Shortens a text to `charsMax` UTF-16 units without splitting a character, and adds an ellipsis if it was longer. */
export function shortened(value: string, charsMax: number): string {
  if (value.length <= charsMax) return value;
  const first = value.slice(0, charsMax).toWellFormed();
  return `${first.replace(/\uFFFD$/, "")}…`;
}
