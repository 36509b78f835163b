/** Longest name of a template field, in characters: more is a sentence that slipped into the header row. */
const FIELD_NAME_CHARS_MAX = 64;

const RESERVED = new Set(["__proto__", "constructor", "prototype"]);

/**
 * The form under which a column and a placeholder meet: `{{ First  Name }}` finds the column `first name`.
 * Unicode composition is settled too, because two editors may write the same `é` differently.
 */
export function fieldName(raw: string): string {
  return raw.normalize("NFC").trim().replace(/\s+/gu, " ").toLowerCase();
}

/** What is wrong with a field's name, or undefined. */
export function fieldNameFault(name: string): string | undefined {
  if (name.length > FIELD_NAME_CHARS_MAX) return `a field name has more than ${FIELD_NAME_CHARS_MAX} characters`;
  return RESERVED.has(name) ? `the field name ${name} is reserved` : undefined;
}

/**
 * Line breaks and tabs become spaces, other control characters and those that turn the direction of
 * writing go. Undefined when nothing a reader could see is left.
 */
export function cleanValue(value: string): string | undefined {
  const cleaned = value
    .toWellFormed()
    .replace(/[\t\n\v\f\r\u0085\u2028\u2029]+/g, " ")
    .replace(/[\p{Cc}\u200E\u200F\u202A-\u202E\u2066-\u2069\uFEFF]/gu, "")
    .trim();
  return /^[\s\p{Default_Ignorable_Code_Point}\u2800]*$/u.test(cleaned) ? undefined : cleaned;
}

/** The first characters, whole ones only, and a mark where there were more. */
export function shortened(value: string, charsMax: number): string {
  if (value.length <= charsMax) return value;
  const first = value.slice(0, charsMax).toWellFormed();
  return `${first.replace(/\uFFFD$/, "")}…`;
}
