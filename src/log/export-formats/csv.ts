import { escapeControls, escapeUnits } from "../../platform/escape-control-characters.ts";
import type { ExportFormat } from "./write-export-text.ts";

const COLUMNS = ["position", "id", "stream", "version", "type", "time", "data", "meta", "hash", "stored"] as const;

/** Byte order mark, which makes a spreadsheet read the file as UTF-8. */
const BYTE_ORDER_MARK = "\ufeff";

/** Pattern of the characters that begin a formula in a spreadsheet, and of the apostrophe that prevents one. */
const SIGNS = String.raw`[=+\-@'\uff1d\uff0b\uff0d\uff20]`;

/**
 * Matches CSV cells that must be guarded, because a spreadsheet would take them for a formula, and those that look
 * guarded already.
 */
const FORMULA = new RegExp(String.raw`^(?:\s*${SIGNS}|[\t\r])`);

/**
 * Matches the beginning of a formula within a text: if a semicolon or a tab divides cells, another cell begins after
 * each of them.
 */
const NEXT_FORMULA = new RegExp(String.raw`([;\t])(?=\s*${SIGNS})`, "g");
const NEXT_GUARDED = new RegExp(String.raw`([;\t])'(?=\s*${SIGNS})`, "g");
const NEXT_SIGN = new RegExp(String.raw`([;\t]\s*)(${SIGNS})`, "g");

/** Apostrophe that guards a cell: a spreadsheet takes a cell that begins with it as text. */
const GUARD = "'";

/**
 * CSV format for events (RFC 4180). `data`, `meta` and `stored` are JSON, the last one empty if nothing is encrypted.
 * No field of an event contains a line break, so each record is one line.
 */
export const csv: ExportFormat = {
  head: `${BYTE_ORDER_MARK}${COLUMNS.join(",")}\r\n`,
  line: ({ position, id, stream, version, type, time, data, meta, hash, stored }) => {
    const texts = [formatJson(data), formatJson(meta), hash, stored === undefined ? "" : formatJson(stored)];
    const cells = [escaped(id), escaped(stream), String(version), escaped(type), time, ...texts];
    return csvRecord([String(position), ...cells]);
  },
};

/** Formats a value as JSON in which no part looks like a formula to a spreadsheet; it parses to the same value. */
function formatJson(value: unknown): string {
  return escapeNextSigns(JSON.stringify(value));
}

/** Escapes, as in JSON, the parts of a name that would control a terminal or begin a formula. */
function escaped(name: string): string {
  return escapeNextSigns(escapeControls(name.replaceAll("\\u", "\\u005cu")));
}

function escapeNextSigns(text: string): string {
  return text.replace(NEXT_SIGN, (_, divider: string, sign: string) => divider + escapeUnits(sign));
}

/** Returns the first line of a CSV file for people. */
export function csvHead(columns: readonly string[]): string {
  return BYTE_ORDER_MARK + csvRecord(columns);
}

/** Returns a line of a CSV file for people, in which no cell is a formula to a spreadsheet. */
export function csvRecord(cells: readonly string[]): string {
  return `${cells.map(cell).join(",")}\r\n`;
}

function cell(text: string): string {
  const guarded = text.replace(NEXT_FORMULA, `$1${GUARD}`);
  return `"${(FORMULA.test(text) ? GUARD + guarded : guarded).replaceAll('"', '""')}"`;
}

/** Reads a cell of {@link csvRecord}, without the apostrophes that keep a spreadsheet from running it. */
export function readGuarded(text: string): string {
  const isGuarded = text.startsWith(GUARD) && FORMULA.test(text.slice(GUARD.length));
  return (isGuarded ? text.slice(GUARD.length) : text).replace(NEXT_GUARDED, "$1");
}
