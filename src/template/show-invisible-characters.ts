/** Matches control characters except line feeds, characters that turn the direction of writing, and invisible ones. */
const UNSEEN = /(?!\n)[\p{Cc}\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff]/gu;

/**
 * Code point of the first of Unicode's pictures of control characters; the pictures are in the order of these
 * characters.
 */
const PICTURES = 0x2400;
const DELETE = 0x7f;
const DELETE_PICTURE = "\u2421";
const SPACE = 0x20;

/** Replaces each invisible character by a visible sign: `␛` for an escape, `<U+202E>` for others. */
export function showUnseen(text: string): string {
  return text.replace(UNSEEN, (sign) => {
    const code = sign.charCodeAt(0);
    if (code < SPACE) return String.fromCharCode(PICTURES + code);
    return code === DELETE ? DELETE_PICTURE : `<${formatCodePoint(sign)}>`;
  });
}

/**
 * Replaces each invisible character by a visible sign, and each line break by `↵`, so that the text fits on one line.
 */
export function showOnOneLine(text: string): string {
  return showUnseen(text).replaceAll("\n", "\u21b5");
}

/** Formats a character's code point, such as `U+001B`. */
export function formatCodePoint(sign: string): string {
  return `U+${sign.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
}
