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
