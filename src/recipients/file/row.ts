import type { ConsentRecord } from "../../../projections/consent.ts";
import { parseTimezone } from "../../platform/parse-timezone.ts";
import { type ConsentFault, isFault, parseConsent, type StatedConsent } from "../parse-consent.ts";
import type { ColumnMap } from "./parse-column-choices.ts";
import { readId, readListedHandle } from "./id-and-handle.ts";
import type { DateOrder } from "../parse-day.ts";
import { type CellRemark, isBlankWord, looksDamaged, type RowRefusal } from "./cell-notes.ts";
import { columnFault, FIELDS_MAX, type Header, isField, RECIPIENT_COLUMNS, shownName, type Columns } from "./header.ts";
import { shortened } from "../../template/normalize-field.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";

/** Maximum length of a template field's value, in characters: a tenth of the longest message. */
const VALUE_CHARS_MAX = 1000;

/** Texts of a row's cells, by column. It is a Map so that a column named `__proto__` cannot do harm. */
export type Cells = Map<string, string>;

/** A row as the file's format gives it, before its values are checked. */
export type FileRow = CellRow | { readonly line: number; readonly refused: RowRefusal };

/** Row with its cells, and remarks on them. */
export interface CellRow {
  readonly line: number;
  readonly cells: Cells;
  readonly header: Header;
  /** Remarks on cells that are not read as written. Later steps of reading the row add theirs. */
  readonly remarks: CellRemark[];
}

export interface ReadOptions {
  /** Time now, in ms since 1970. */
  readonly now: number;
  /** Order of day and month in dates that do not begin with the year. */
  readonly dates?: DateOrder | undefined;
  /**
   * The column that the operator chose for each name in the file's header. Names without a choice are recognised by the
   * program.
   */
  readonly map?: ColumnMap | undefined;
  /** Consent that the operator states for all rows that do not say it themselves. */
  readonly stated?: StatedConsent | undefined;
}

/** True for a column whose cells are read as the network's id or handle rather than as text. */
export function isId(column: string): boolean {
  return column === "id" || column === "username";
}

/**
 * Recipient in a row of a file, with at least one of `id` and `username`. Members that the row lacks are absent.
 * `fields` has no prototype, so that any column name is safe.
 */
export interface ImportedRecipient extends ConsentRecord {
  readonly id?: string;
  /** Handle of the recipient as written, without @ and address; compare it in lower case. */
  readonly username?: string;
  readonly name?: string;
  /** IANA name of the recipient's time zone. */
  readonly timezone?: string;
  readonly fields: Readonly<Record<string, string>>;
  /** Columns that the row has but leaves blank: `name`, `timezone` and template fields. */
  readonly blank: string[];
}

/** Returns the row's recipient or, if the row cannot be imported, the refused value and the reason. */
export function readRow(row: CellRow, options: ReadOptions): ImportedRecipient | RowRefusal {
  const refusal = findRefusal(row.cells, RECIPIENT_COLUMNS) ?? findOptOut(row);
  if (refusal !== undefined) return refusal;
  for (const column of ["id", "username", "name"]) clearBlankWord(row, column);
  const { cells } = row;
  const cell = (column: string): string => cells.get(column) ?? "";
  const id = readId(cell("id"));
  const username = readListedHandle(cell("username"));
  if (typeof id === "object") return { value: cell("id"), reason: id.fault };
  if (typeof username === "object") return { value: cell("username"), reason: username.fault };
  if (id === undefined && username === undefined) {
    return refuseUnnamed(row, "neither a username nor an id");
  }
  const consent = readConsent(row, options);
  if (isFault(consent)) return refuseConsent(consent, cell(consent.member));
  const zone = cell("timezone").trim();
  const timezone = parseTimezone(zone);
  if (zone !== "" && timezone === undefined) {
    return { value: zone, reason: "timezone is no IANA time zone such as Europe/Berlin" };
  }
  const name = cell("name").trim();
  return {
    ...omitUndefined({ id, username, name: name === "" ? undefined : name, timezone }),
    ...consent,
    ...readFields(row),
  };
}

/**
 * Reads the consent in a row. The basis that the operator states counts if the row gives none, and the source if the
 * row gives none and does not deny its consent.
 */
function readConsent(row: CellRow, { now, dates, stated = {} }: ReadOptions): ConsentRecord | ConsentFault {
  const consent = parseConsent(
    (member) => readChosenWord(row, member) || (member === "basis" ? stated.basis : undefined),
    now,
    dates,
  );
  if (isFault(consent) || stated.consent_source === undefined || consent.basis === undefined) return consent;
  const isDenied = consent.basis === "none" && readChosenWord(row, "basis") !== "";
  return isDenied ? consent : { consent_source: stated.consent_source, ...consent };
}

/** Words for what each kind of evidence says about a consent. */
const EVIDENCE_SAYS: Readonly<Record<string, string>> = {
  consent_at: "when",
  consent_source: "where",
  consent_text: "to which words",
  consent_for: "to what",
};

/** End of each refusal of a row that has evidence of a consent, but no basis. */
export const NO_BASIS = "choose the basis for all rows, or add the column basis";

/** Converts a fault in a row's consent to a refusal. If the basis is absent, the refusal says how to state it. */
function refuseConsent({ member, reason, lacks }: ConsentFault, value: string): RowRefusal {
  if (lacks !== "basis") return { value, reason };
  const says = `${member} says ${EVIDENCE_SAYS[member]} they agreed, not how`;
  return { value, reason: `${says}: ${NO_BASIS}` };
}

/** Words for yes, in a column that the operator assigned to a consent. */
const YES = /^(?:yes|y|true|1|ja|oui|s[ií])$/i;
const NO = /^(?:no?|false|0|nein|non)$/i;
const CHOSEN_WORDS: Readonly<Record<string, readonly [yes: string, no: string]>> = {
  basis: ["opt_in", "none"],
  tracking: ["granted", "denied"],
};

/**
 * Returns a member of the consent as text. A yes or no counts only in a column that the operator assigned to that
 * member.
 */
function readChosenWord({ cells, header }: CellRow, member: string): string {
  const text = cells.get(member)?.trim() ?? "";
  const words = header.chosen.has(member) ? CHOSEN_WORDS[member] : undefined;
  if (words === undefined) return text;
  return YES.test(text) ? words[0] : NO.test(text) ? words[1] : text;
}

/** Clears a cell that holds a word such as `null`, which a program wrote for an empty cell, and adds a remark. */
export function clearBlankWord({ cells, remarks }: CellRow, column: string): void {
  const text = cells.get(column)?.trim() ?? "";
  if (text === "" || !isBlankWord(text, column === "name")) return;
  cells.set(column, "");
  remarks.push({ note: "read_as_blank", column, value: text });
}

/**
 * Returns the refusal of a row that names no recipient. If a cell held a program's word for an empty cell, such as
 * `null`, the refusal names that word.
 */
export function refuseUnnamed({ cells, header, remarks }: CellRow, reason: string): RowRefusal {
  const word = remarks.find(({ note, column }) => note === "read_as_blank" && isId(column))?.value;
  const own = header.ownNames.get("username") ?? header.ownNames.get("id");
  if (word === undefined) {
    const value = [...cells.values()].join(", ");
    return { value, reason: own === undefined ? reason : `${shownName(own)} is empty` };
  }
  return { value: word, reason: `${reason} (${JSON.stringify(word)} is a program's word for an empty cell)` };
}

/** Words that programs write in an opt-out column for a recipient who did not opt out. */
const NOT_OPTED_OUT = /^(?:no?|false|0|nein|non|falsch|faux|falso|nee|não|nej|нет)?$/i;

/**
 * Returns the refusal of a row that says that the recipient opted out: the import must not treat them as a recipient to
 * contact. Undefined for other rows.
 */
function findOptOut({ cells, header }: CellRow): RowRefusal | undefined {
  for (const column of header.optOuts) {
    const value = cells.get(column)?.trim() ?? "";
    if (NOT_OPTED_OUT.test(value) || isBlankWord(value, false)) continue;
    const says = `the column ${shownName(column)} says ${JSON.stringify(shortened(value, WORD_CHARS_SHOWN))}`;
    return { value, reason: `${says}: import this row as a suppression, or remove the column` };
  }
  return undefined;
}

/** Maximum number of characters of a value in a sentence for the operator. */
const WORD_CHARS_SHOWN = 40;

/** Reads the template fields of a row, and adds remarks on their texts. */
function readFields({ cells, header: { nameLike }, remarks }: CellRow): ImportedRecipient {
  const fields: Record<string, string> = Object.create(null);
  const blank: string[] = [];
  if (nameLike !== undefined) remarks.push({ note: "did_you_mean_name", column: nameLike, value: "" });
  for (const [column, value] of cells) {
    const text = value.trim();
    const isText = isField(column);
    if (text === "" && (isText || CLEARED_BY_BLANK.has(column))) blank.push(column);
    else if (isText) fields[column] = text;
    if ((isText || column === "name") && looksDamaged(text))
      remarks.push({ note: "looks_damaged", column, value: text });
  }
  return { fields, blank };
}

/**
 * Columns, besides template fields, whose recorded value is deleted if the cell is blank. A blank cell never changes a
 * consent.
 */
const CLEARED_BY_BLANK = new Set(["name", "timezone"]);

/**
 * Returns the refusal of a row for a fault that can be in any column, such as a value that is too long; undefined if
 * there is none.
 */
export function findRefusal(cells: Cells, columns: Columns): RowRefusal | undefined {
  let fields = 0;
  for (const [column, value] of cells) {
    const reason = columnFault(column, columns);
    if (reason !== undefined) return { value: column, reason };
    if (column === "") return { value, reason: "a field without a name" };
    if (columns.others === "fields" && isField(column) && ++fields > FIELDS_MAX)
      return { value: column, reason: `more than ${FIELDS_MAX} template fields` };
    if (value.length > VALUE_CHARS_MAX)
      return { value, reason: `${column} has more than ${VALUE_CHARS_MAX} characters` };
    // Programs write this character where they could not read the original one, which is lost.
    if (value.includes("\uFFFD")) {
      return { value, reason: `${column} holds damaged characters (the file was once read in a wrong encoding)` };
    }
  }
  return undefined;
}
