import { shortened } from "../../template/normalize-field.ts";
import type { Some } from "./format-and-limits.ts";

/** Kinds of notes about a cell whose row was accepted. */
export const CELL_NOTES = [
  /** Note: the cell counts as empty, because it holds a word such as `null` that programs write for an empty cell. */
  "read_as_blank",
  /**
   * Note: the import removed an apostrophe or `=""` around the cell's value, which the program that wrote the file had
   * added so that a spreadsheet does not change the value.
   */
  "guard_removed",
  /** Note: the cell was kept, although a program probably damaged it. */
  "looks_damaged",
  /** Note: the row ends before this column, so its cell counts as empty. */
  "cells_missing",
  /** Note: this column became a template field, but may be meant as the recipient's name. */
  "did_you_mean_name",
] as const;

/** Refusal of a row of a file: a value that cannot be used, and the reason. */
export interface RowRefusal {
  /** Refused value as it stands in the file. */
  readonly value: string;
  readonly reason: string;
}

/** Note on one cell of a file. */
export interface CellRemark {
  readonly note: (typeof CELL_NOTES)[number];
  readonly column: string;
  /** Value of the cell as it stands in the file. */
  readonly value: string;
}

/** Note on `count` cells with the same remark. The first of them is on `line` and has `value`. */
export interface CellNote extends CellRemark {
  readonly line: number;
  readonly count: number;
}

/**
 * Maximum number of notes about a file that are kept, since no operator reads more. Each note is about one word of a
 * column.
 */
const NOTES_MAX = 100;

/** Maximum number of characters of a value in a note. */
const VALUE_SHOWN_CHARS_MAX = 60;

/**
 * Collects notes on cells. One note stands for all cells of a column with the same kind of note; for words read as
 * blank, only if the word is the same too.
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
    /** Returns the notes. `count`: the number of cells with a note, also of those beyond the maximum. */
    all: (): Some<CellNote> => ({ count: cells, first: [...notes.values()] }),
  };
}

/** Describes a note on cells as a sentence for the operator. */
export function describeCellNote({ note, column, value, line, count }: CellNote): string {
  const where = count === 1 ? `on line ${line}` : `in ${count} rows, first on line ${line}`;
  switch (note) {
    case "read_as_blank":
      return `${column}: "${value}" ${where} was read as a blank cell`;
    case "guard_removed":
      return `${column}: the guard of ${value} against spreadsheet formulas was removed ${where}`;
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

/** Matches text in brackets. It may be a word for an empty cell, also one that has another meaning without brackets. */
const BRACKETED = /^[([{<](.*)[)\]}>]$/;
const BRACKETED_WORDS = new Set(
  ["blank", "empty", "not set", "not provided", "no value", "unknown", "leer", "vide", "vacío", "vuoto"].concat([
    ...BLANK_WORDS,
  ]),
);

/** Matches errors of formulas, such as `#REF!`, `#BEZUG!`, `#¿NOMBRE?`, and LibreOffice's `Err:502`. */
const FORMULA_ERROR = /^#(?:[\p{Lu}¡¿][\p{Lu}¡¿\d/_]*[!?]|(?:N\/[A-Z]|NV|Н\/Д)!?)$/u;
const CALC_ERROR = /^(?:Err|Fehler|Erreur):\d{3}$/;

function isFormulaError(text: string): boolean {
  return text.startsWith("#") ? FORMULA_ERROR.test(text) : CALC_ERROR.test(text);
}

/** Maximum length of a word for an empty cell or of a formula's error, in characters. Longer texts need no check. */
const WORD_CHARS_MAX = 24;

/** First names that, in another letter case, are programs' words for an empty cell: NaN, NA, nil. */
const FIRST_NAMES = new Set(["Nan", "Na", "Nil"]);

/** True for a text that a program writes into a cell that is empty, or whose formula failed. */
export function isBlankWord(text: string, isName: boolean): boolean {
  if (isName && FIRST_NAMES.has(text)) return false;
  if (text.length > WORD_CHARS_MAX) return false;
  const word = text.toLowerCase();
  return BLANK_WORDS.has(word) || isFormulaError(text) || BRACKETED_WORDS.has(BRACKETED.exec(word)?.[1]?.trim() ?? " ");
}

/** Matches a long number as a spreadsheet rounds it, in scientific notation; in some languages with a comma. */
const SCIENTIFIC = /^\d(?:[.,]\d+)?e\+\d+$/i;

/** Matches UTF-8 text that was read as Windows-1252, such as `MÃ¼ller` or `itâ€™s`. */
const MOJIBAKE =
  /Ã[\u0080-\u00BF\u0152\u0153\u0160\u0161\u0178\u017D\u017E\u2013-\u203A]|â€[\u0090-\u00BF\u2122\u0153\u0161]/;

/** True for text that a program damaged: a failed formula, a rounded number, letters of a wrong encoding. */
export function looksDamaged(text: string): boolean {
  if (text.includes("Ã") || text.includes("â€")) return MOJIBAKE.test(text);
  return text.length <= WORD_CHARS_MAX && (isFormulaError(text) || SCIENTIFIC.test(text));
}
