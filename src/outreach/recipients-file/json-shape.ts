import { ROWS_MAX } from "./limits.ts";

/** Levels of objects and lists: a recipient has three at the most, and what stands in one by mistake a few more. */
const DEPTH_MAX = 16;

/** As many as a file of the most rows has: each row, their list, and the object around it. */
const OPENED_MAX = ROWS_MAX + 2;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/**
 * Why JSON is not to be parsed, or undefined. A parser keeps a hundred bytes for each bracket: ten megabytes of nothing else
 * would take a gigabyte. Anything else that is wrong is left to the parser.
 */
export function shapeFault(text: string): string | undefined {
  let depth = 0;
  let opened = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (CLOSING.has(code)) depth -= 1;
    else if (OPENING.has(code)) {
      depth += 1;
      opened += 1;
      if (depth > DEPTH_MAX) return `is nested deeper than ${DEPTH_MAX} levels: a recipient is an object of texts`;
    }
  }
  return opened > OPENED_MAX ? `has more than ${OPENED_MAX} objects and lists` : undefined;
}

/** Where the quote is that ends the string; the text's end where none does. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at += 1;
  }
  return text.length;
}
