// Reads a file for a preview of its import, with a guess for each column that has no known name.
import { fieldName, shortened } from "../../template/normalize-field.ts";
import { ServiceError } from "../../platform/service-error.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { DATE_ORDERS, parseDay, type DateOrder } from "../parse-day.ts";
import { decodeText, parseRecipients } from "../parse-imported-lists.ts";
import type { ColumnMap, WhyMapped } from "./parse-column-choices.ts";
import { readCsvTable } from "./csv.ts";
import type { RecipientsFormat } from "./format-and-limits.ts";
import { guessedColumn, isOptOutColumn, missedColumn } from "./header-names.ts";
import { findMeanings, RECIPIENT_COLUMNS } from "./header.ts";
import { readJsonlRows, readJsonRows } from "./json.ts";
import { NO_BASIS, type ReadOptions } from "./row.ts";

/**
 * Maximum number of columns that the preview of a file names: each is a field of the form, and a page may have 200 KB.
 */
const COLUMNS_PREVIEWED_MAX = 60;

const EXAMPLE_CHARS_MAX = 60;

/** A column of a previewed file. */
export interface PreviewedColumn {
  /** Name in the file's header. */
  readonly name: string;
  /** First cell of the column that is not empty. */
  readonly example: string;
  /** Column of ours, or template field, that the column becomes; null if it is left out. */
  readonly column: string | null;
  readonly why: WhyMapped;
  /** True if the operator has to check the column's meaning, because the guess may be wrong. */
  readonly is_unclear: boolean;
}

/** A date of a file, and how it reads with the day first (`dmy`) and with the month first (`mdy`). */
interface Readings {
  readonly example: string;
  readonly dmy: string;
  readonly mdy: string;
}

/** Dates of a previewed file that may be read in two ways. */
export interface UnclearDates extends Readings {
  /** Order in which the preview read the dates; null if it could not tell, so that they are refused. */
  readonly order: DateOrder | null;
  /** True if other dates of the file can be read in this order only. */
  readonly is_proven: boolean;
}

export interface FilePreview {
  readonly rows: number;
  /** Character between two cells; absent if the file is no CSV file. */
  readonly delimiter?: string;
  readonly columns: PreviewedColumn[];
  readonly dates?: UnclearDates;
  /** Number of rows that are refused because they have evidence of a consent, but no basis. */
  readonly without_basis: number;
  /** Reason why no row of the file can be imported as the columns are assigned now. */
  readonly fault?: string;
}

interface PreviewOptions extends ReadOptions {
  /**
   * Template fields that the configured message uses; the preview leaves other unknown columns out. Undefined if no
   * message is configured, so that all columns stay.
   */
  readonly fields?: readonly string[] | undefined;
}

/**
 * Reads a file as {@link parseRecipients} does, and guesses the meaning of each column for which `map` has no choice.
 * Throws a ServiceError (invalid) if the whole file is unusable.
 */
export function previewRecipients(
  file: string | Uint8Array,
  format: RecipientsFormat,
  { fields, ...options }: PreviewOptions,
): ReturnType<typeof parseRecipients> & { readonly preview: FilePreview } {
  const { names, cells, rowCount, delimiter } = readTable(decodeText(file), format);
  const columns = proposeColumns(names, options.map, fields).map((column) => ({
    ...column,
    example: shortened(
      cells(column.name).find((cell) => cell.trim() !== "" && cell !== column.name) ?? "",
      EXAMPLE_CHARS_MAX,
    ),
  }));
  const dated = columns.filter(({ column }) => column?.endsWith("_at") === true && !isUnused(column));
  const dates = findUnclearDates(
    dated.flatMap(({ name }) => cells(name)),
    options,
  );
  const map = new Map(columns.map(({ name, column }) => [fieldName(name), column]));
  const preview = { rows: rowCount, columns, ...omitUndefined({ dates, delimiter }) };
  try {
    const read = parseRecipients(file, format, { ...options, map, dates: options.dates ?? dates?.order ?? undefined });
    const withoutBasis = read.refused.filter(({ reason }) => reason.endsWith(NO_BASIS));
    return { ...read, preview: { ...preview, without_basis: withoutBasis.length } };
  } catch (fault) {
    if (!(fault instanceof ServiceError)) throw fault;
    return {
      rows: [],
      refused: [],
      duplicates: [],
      notes: { count: 0, first: [] },
      preview: { ...preview, without_basis: 0, fault: fault.message },
    };
  }
}

const isUnused = (column: string | null): boolean => column === null || !RECIPIENT_COLUMNS.known.has(column);

/** Returns the names of a file's columns, and a function that returns the cells of one column. */
function readTable(text: string, format: RecipientsFormat) {
  if (format === "csv") {
    const { names, records, delimiter } = readCsvTable(text);
    const cells = (name: string) => {
      const at = names.indexOf(name);
      return records.map((record) => record.cells[at] ?? "");
    };
    return { names: checkNames(names), cells, rowCount: records.length, delimiter };
  }
  const read = format === "json" ? readJsonRows : readJsonlRows;
  const rows = [...read(text, { ...RECIPIENT_COLUMNS, known: new Set(), others: "ignored" })];
  const found = rows.flatMap((row) => ("cells" in row ? [row.cells] : []));
  const names = new Set<string>();
  for (const row of found) for (const name of row.keys()) if (names.size <= COLUMNS_PREVIEWED_MAX) names.add(name);
  const cells = (name: string) => found.map((row) => row.get(name) ?? "");
  return { names: checkNames([...names]), cells, rowCount: rows.length };
}

/** Returns the names that are not blank, each once. Throws a ServiceError (invalid) if they are too many. */
function checkNames(names: readonly string[]): readonly string[] {
  const named = [
    ...new Map(names.filter((name) => name.trim() !== "").map((name) => [fieldName(name), name])).values(),
  ];
  if (named.length <= COLUMNS_PREVIEWED_MAX) return named;
  throw new ServiceError(
    "invalid",
    `the file has more than ${COLUMNS_PREVIEWED_MAX} columns: remove those that your message does not use`,
  );
}

function proposeColumns(
  names: readonly string[],
  map: ColumnMap | undefined,
  fields: readonly string[] | undefined,
): readonly Omit<PreviewedColumn, "example">[] {
  const { known } = RECIPIENT_COLUMNS;
  const found = findMeanings(names, { ...RECIPIENT_COLUMNS, chosen: map });
  const taken = new Map<string, number>();
  for (const column of found) if (column != null) taken.set(column, (taken.get(column) ?? 0) + 1);
  const isIdentified = RECIPIENT_COLUMNS.identifying.some((column) => taken.has(column));
  const guessed = new Set<string>();
  return names.map((name, index) => {
    const column = found[index] ?? null;
    if (map?.has(fieldName(name)) === true)
      return { name, column, why: "chosen", is_unclear: column !== null && taken.get(column)! > 1 };
    if (column !== null && known.has(column)) return { name, column, why: "named", is_unclear: taken.get(column)! > 1 };
    if (isOptOutColumn(name)) return { name, column, why: "opt_out", is_unclear: true };
    const guess = guessedColumn(name) ?? (isIdentified ? undefined : missedColumn(name));
    if (guess !== undefined && known.has(guess) && !taken.has(guess)) {
      // If two names lead to the same guess, the second column is left out until the operator chooses between them.
      const isSecond = guessed.has(guess);
      guessed.add(guess);
      return { name, column: isSecond ? null : guess, why: "guessed", is_unclear: isSecond };
    }
    const isField = fields === undefined || fields.includes(fieldName(name));
    return isField
      ? { name, column, why: "field", is_unclear: false }
      : { name, column: null, why: "unused", is_unclear: false };
  });
}

/**
 * Finds the first date that can be read in two ways, and the order for all dates: the operator's choice, else the only
 * one that other dates allow, else the day first if dots separate the numbers.
 */
function findUnclearDates(cells: readonly string[], { now, dates }: ReadOptions): UnclearDates | undefined {
  const fitting = new Set<DateOrder>();
  let unclear: Readings | undefined;
  for (const cell of cells) {
    const text = cell.trim();
    if (text === "" || typeof parseDay(text, now) === "string") continue;
    const [dmy, mdy] = DATE_ORDERS.map((order) => parseDay(text, now, order)) as [unknown, unknown];
    if (typeof dmy === "string" && typeof mdy === "string") unclear ??= { example: text, dmy, mdy };
    else if (typeof dmy === "string") fitting.add("dmy");
    else if (typeof mdy === "string") fitting.add("mdy");
  }
  const [only] = fitting.size === 1 ? fitting : [];
  if (unclear === undefined && only === undefined) return undefined;
  const ofDots = unclear?.example.includes(".") === true && fitting.size === 0 ? "dmy" : undefined;
  return {
    ...(unclear ?? { example: "", dmy: "", mdy: "" }),
    order: dates ?? only ?? ofDots ?? null,
    is_proven: only !== undefined,
  };
}
