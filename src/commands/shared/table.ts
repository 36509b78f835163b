import { eastAsianWidth } from "get-east-asian-width";

/** Rows as aligned columns, made safe for a terminal. Widths are those of the terminal: 漢 takes two columns. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => printable(String(cell))));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => countColumns(row[column] ?? ""))));
  return cells
    .map(
      (row) =>
        `${row
          .map((cell, at) => cell + " ".repeat((widths[at] ?? 0) - countColumns(cell)))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

const CHARACTERS = new Intl.Segmenter("en", { granularity: "grapheme" });
const EMOJI = /^\p{RGI_Emoji}$/v;

/** How wide a terminal shows it: what people see as one character takes one column or two. */
function countColumns(text: string): number {
  let columns = 0;
  for (const { segment } of CHARACTERS.segment(text)) {
    columns += EMOJI.test(segment) ? 2 : eastAsianWidth(segment.codePointAt(0) ?? 0);
  }
  return columns;
}

/** Control characters, and those that turn the direction of what follows. */
// oxlint-disable-next-line no-control-regex
const STEERING = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Text from outside may hold escape sequences that would steer the terminal. */
export function printable(text: string): string {
  return text.replace(STEERING, "\ufffd");
}
