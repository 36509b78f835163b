import { shortened } from "../../template/normalize-field.ts";
import type { Some } from "./format.ts";

/** Kinds of notes about a cell of a row that was taken. */
export const CELL_NOTES = [
  /** A program wrote its word for an empty cell. */
  "read_as_blank",
  /** An apostrophe or `=""` that kept a spreadsheet from changing the cell was removed. */
  "guard_removed",
  /** The cell was kept, although a program probably damaged it. */
  "looks_damaged",
  /** The row ends before this column. */
  "cells_missing",
  /** The template field may be the recipient's name. */
  "did_you_mean_name",
] as const;

/** A value that cannot be used, and the reason. */
export interface RowRefusal {
  /** As it stands in the file. */
  readonly value: string;
  readonly reason: string;
}

/** One note on one cell. */
export interface CellRemark {
  readonly note: (typeof CELL_NOTES)[number];
  readonly column: string;
  /** As it stands in the file. */
  readonly value: string;
}

/** The same remark on `count` cells, first on `line`. `value` is that of the first cell. */
export interface CellNote extends CellRemark {
  readonly line: number;
  readonly count: number;
}

/** Most notes that are kept. Each is about one word of a column, and an operator reads no more. */
const NOTES_MAX = 100;

/** Characters of a value that a note shows. */
const VALUE_SHOWN_CHARS_MAX = 60;

/**
 * Collects remarks. Cells of one column with the same kind of note become one, and blank words only if they are the
 * same word.
 */
export function createCellNotes() {
  const notes = new Map<string, CellNote>();
  let cells = 0;
  return {
    add(line: number, { note, column, value }: CellRemark): void {
      cells += 1;
      const key = JSON.stringify([note, column, note === "read_as_blank" ? value : ""]);
      const before = notes.get(key);
      if (before !== undefined) notes.set(key, { ...before, count: before.count + 1 });
      else if (notes.size < NOTES_MAX)
        notes.set(key, { note, column, value: shortened(value, VALUE_SHOWN_CHARS_MAX), line, count: 1 });
    },
    /** `count` is the number of cells, including those without a kept note. */
    all: (): Some<CellNote> => ({ count: cells, first: [...notes.values()] }),
  };
}

/** A note as a sentence for the operator. */
export function describeCellNote({ note, column, value, line, count }: CellNote): string {
  const where = count === 1 ? `on line ${line}` : `in ${count} rows, first on line ${line}`;
  switch (note) {
    case "read_as_blank":
      return `${column}: "${value}" ${where} was read as a blank cell`;
    case "guard_removed":
      return `${column}: what guards ${value} against a spreadsheet was taken off ${where}`;
    case "looks_damaged":
      return `${column}: "${value}" ${where} looks damaged by a program; it was kept as it is`;
    case "cells_missing":
      return `the row ends before the column ${column} ${where}: the cells from there on were read as blank`;
    case "did_you_mean_name":
      return `${column} became a template field ${where}: did you mean name? Then rename the column to name`;
  }
}

/** Words that programs write for an empty cell, in lower case. They are never read as a handle or a name. */
const BLANK_WORDS = new Set(
  ["null", "none", "nan", "nil", "undefined", "n/a", "n.a.", "na", "#n/a", "#nv", "#n/d", "#n/d!"].concat([
    "#n/b",
    "#saknas!",
    "#н/д",
    "\\n",
    "-",
    "--",
    "---",
    "–",
    "—",
    "...",
    "…",
    "?",
    "#getting_data",
    "#field!",
    "#spill!",
  ]),
);

/** The same words in brackets, and some that count only in brackets. */
const BRACKETED = /^[([{<](.*)[)\]}>]$/;
const BRACKETED_WORDS = new Set(
  ["blank", "empty", "not set", "not provided", "no value", "unknown", "leer", "vide", "vacío", "vuoto"].concat([
    ...BLANK_WORDS,
  ]),
);

/** Errors such as `#REF!`, `#BEZUG!`, `#¿NOMBRE?`, and LibreOffice's `Err:502`. */
const FORMULA_ERROR = /^#(?:[\p{Lu}¡¿][\p{Lu}¡¿\d/_]*[!?]|(?:N\/[A-Z]|NV|Н\/Д)!?)$/u;
const CALC_ERROR = /^(?:Err|Fehler|Erreur):\d{3}$/;

function isFormulaError(text: string): boolean {
  return text.startsWith("#") ? FORMULA_ERROR.test(text) : CALC_ERROR.test(text);
}

/** Longest of these words and errors, in characters. Longer texts need no further check. */
const WORD_CHARS_MAX = 24;

/** First names as people write them. In another letter case they are words of programs: NaN, NA, nil. */
const FIRST_NAMES = new Set(["Nan", "Na", "Nil"]);

/** True for a text that a program writes into a cell that is empty or that it could not compute. */
export function isBlankWord(text: string, isName: boolean): boolean {
  if (isName && FIRST_NAMES.has(text)) return false;
  if (text.length > WORD_CHARS_MAX) return false;
  const word = text.toLowerCase();
  return BLANK_WORDS.has(word) || isFormulaError(text) || BRACKETED_WORDS.has(BRACKETED.exec(word)?.[1]?.trim() ?? " ");
}

/** A long number as a spreadsheet writes it; in some languages with a comma. */
const SCIENTIFIC = /^\d(?:[.,]\d+)?e\+\d+$/i;

/** UTF-8 that was read as Windows-1252: `MÃ¼ller`, `itâ€™s`. */
const MOJIBAKE =
  /Ã[\u0080-\u00BF\u0152\u0153\u0160\u0161\u0178\u017D\u017E\u2013-\u203A]|â€[\u0090-\u00BF\u2122\u0153\u0161]/;

/** True for text that a program damaged: a failed formula, a rounded number, letters of a wrong encoding. */
export function looksDamaged(text: string): boolean {
  if (text.includes("Ã") || text.includes("â€")) return MOJIBAKE.test(text);
  return text.length <= WORD_CHARS_MAX && (isFormulaError(text) || SCIENTIFIC.test(text));
}
