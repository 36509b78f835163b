import { formatCodePoint } from "./show-invisible-characters.ts";

/** Maximum number of characters of a message that a warning repeats. */
const SHOWN_CHARS_MAX = 40;

/** Patterns of text in a message that looks like an instruction to another program, but is sent as it stands. */
const SLIPS: readonly { readonly pattern: RegExp; readonly advice: string }[] = [
  { pattern: /(?<![{$])\{[ \t]*[\p{L}_][\p{L}\p{N}_ .|-]{0,63}\}(?!\})/u, advice: "a placeholder is {{name}}" },
  {
    pattern:
      /\*\|[^|\n]{1,64}\|\*|\[\[[^\]\n]{1,64}\]\]|<<[^<>\n]{1,64}>>|\$\{[^}\n]{1,64}\}|%[A-Za-z_]{2,64}%|\[(?:(?:first|last|full|user)[ _-]?)?name\]/i,
    advice: "a placeholder is {{name}}",
  },
  {
    pattern: /&(?:amp|lt|gt|quot|apos|nbsp|[mn]dash|euro|[aou]uml|szlig|#\d{1,6}|#x[\da-f]{1,6});/i,
    advice: "write the character itself",
  },
  { pattern: /<\/?(?:br|p|b|i|u|a|strong|em|div|span|ul|ol|li)(?:\s[^<>\n]*)?\/?>/i, advice: "X shows no HTML" },
  { pattern: /\\[nrt]/, advice: "a line break is a real one; \\n is one only in double quotes in .env" },
  {
    pattern: /[ÃÂ][\u0080-\u00bf\u20ac\u2122\u0152\u0153\u0160\u0161\u0178]|â€|ðŸ/,
    advice: "it looks like UTF-8 that was read as Windows-1252",
  },
];

const QUOTES = [`""`, "''", "``", "“”", "„“", "„”", "«»", "»«", "‘’"];

/** Matches a line of hyphens and dashes that was probably meant to separate variants, but does not. */
const DASHES = /^(?!---[ \t]*$)\s*[-\u2010-\u2015\u2212][-\u2010-\u2015\u2212\s]*$/;

// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;

/** Returns warnings for the operator about parts of a message that are sent as they stand, each kind once. */
export function warnOfSlips(raw: string): readonly string[] {
  const text = raw.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const lines = text.split("\n");
  const warnings = SLIPS.flatMap(({ pattern, advice }) => {
    const at = lines.findIndex((line) => pattern.test(line));
    if (at === -1) return [];
    const [found = ""] = pattern.exec(lines[at]!) ?? [];
    return `line ${at + 1}: ${JSON.stringify(found.slice(0, SHOWN_CHARS_MAX))} is sent as it stands; ${advice}`;
  });
  const dashes = lines.findIndex((line) => DASHES.test(line));
  if (dashes !== -1)
    warnings.push(
      `line ${dashes + 1}: ${JSON.stringify(lines[dashes]!.slice(0, SHOWN_CHARS_MAX))} separates no variants; a line of exactly --- does`,
    );
  const control = lines.findIndex((line) => CONTROL.test(line));
  if (control !== -1)
    warnings.push(
      `line ${control + 1}: the control character ${formatCodePoint(CONTROL.exec(lines[control]!)![0])} is sent`,
    );
  const trimmed = text.trim();
  if (trimmed.length > 1 && QUOTES.includes(`${trimmed[0]}${trimmed.at(-1)}`))
    warnings.push(`the text begins and ends with ${trimmed[0]} and ${trimmed.at(-1)}, which are sent`);
  return warnings;
}
