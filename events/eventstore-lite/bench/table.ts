import type { Row } from "./measure.ts";

/** Formats the rows as a table for people, one line each. */
export function tableOf(rows: readonly Row[]): string {
  const table = [["what", "ours", "limit", "ratio (spread)", "bar"], ...rows.map(cellsOf)];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((cells) => cells[column]!.length)));
  const lines = table.map((cells) => cells.map((cell, column) => cell.padEnd(widths[column]!)).join("  "));
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

function cellsOf(row: Row): readonly string[] {
  const { what, unit, ours, limit, ratio, spread } = row;
  return [
    what,
    `${rounded(ours)} ${unit}`,
    `${rounded(limit)} ${unit}`,
    `${ratio.toFixed(2)} (${spread[0].toFixed(2)}–${spread[1].toFixed(2)})`,
    barOf(row),
  ];
}

function barOf(row: Row): string {
  if (row.bar === undefined) return "–";
  return row.bar.isMet(row) ? row.bar.text : `${row.bar.text}  NOT MET`;
}

/** Large figures are whole numbers; small ones have a decimal. */
function rounded(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: value < 100 ? 1 : 0 });
}

/** Returns a row for JSON: the bar as text, and if it is met. */
export function plainRow({ bar, ...row }: Row): object {
  return bar === undefined ? row : { ...row, bar: bar.text, met: bar.isMet(row) };
}
