import type { Row } from "./compare-contenders.ts";

/** Formats the benchmark results as a table for people, one line for each row. */
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

/** Formats a figure of the table: whole numbers from 100 on, at most one decimal below. */
function rounded(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: value < 100 ? 1 : 0 });
}

/** Returns a row of the benchmark table for JSON output: its target as text, and whether the target is met. */
export function plainRow({ bar, ...row }: Row): object {
  return bar === undefined ? row : { ...row, bar: bar.text, met: bar.isMet(row) };
}
