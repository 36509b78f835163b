import { escapeHtml } from "../html.ts";

export type Row = readonly string[];

/** Rows shown of each list. */
const SHOWN = 20;

export function newest<T>(items: readonly T[]): readonly T[] {
  return items.slice(-SHOWN).toReversed();
}

/** A heading and its table; all of it is text, none of it HTML. */
export function table(title: string, head: Row, rows: readonly Row[]): string {
  const cells = (tag: "th" | "td", row: Row): string =>
    `<tr>${row.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join("")}</tr>`;
  const body =
    rows.length === 0
      ? "<p>nothing yet</p>"
      : `<table>${cells("th", head)}${rows.map((row) => cells("td", row)).join("")}</table>`;
  return `<h2>${escapeHtml(title)}</h2>${body}`;
}
