import { ServiceError } from "../../platform/service-error.ts";
import { fieldName, fieldNameFault, shortened } from "../../template/normalize-field.ts";
import { CONSENT_MEMBERS } from "../parse-consent.ts";
import { COLUMNS_MAX } from "./format-and-limits.ts";
import { ALL_OF, EITHER } from "../../platform/format-numbers-and-lists.ts";
import { askedColumn, certainColumn, isOptOutColumn, likelyColumn, missedColumn } from "./header-names.ts";
import type { ColumnMap } from "./parse-column-choices.ts";
import type { RowRefusal } from "./cell-notes.ts";

/** Maximum number of template fields of a recipient. */
export const FIELDS_MAX = 50;

/** The columns of one kind of file, such as a list of recipients, and how they are read. */
export interface Columns {
  /** Name of the member that holds the rows, in a JSON file that is an object. */
  readonly list: string;
  readonly known: ReadonlySet<string>;
  /** Columns that identify a row: at least one of them is needed, or all with `needsAll`. */
  readonly identifying: readonly string[];
  readonly needsAll?: true;
  /** Treatment of columns that are not `known`: they become template fields, or are refused or ignored. */
  readonly others: "fields" | "refused" | "ignored";
  /** The operator's choice of columns for names in the header. */
  readonly chosen?: ColumnMap | undefined;
}

export const RECIPIENT_COLUMNS: Columns = {
  list: "recipients",
  known: new Set(["username", "id", "name", "timezone", ...CONSENT_MEMBERS]),
  identifying: ["username", "id"],
  others: "fields",
};

export const SUPPRESSION_COLUMNS: Columns = {
  list: "suppressions",
  known: new Set(["id", "username", "hash", "reason", "suppressed_at"]),
  identifying: ["username", "id", "hash"],
  others: "refused",
};

export const LINK_COLUMNS: Columns = {
  list: "links",
  known: new Set(["code", "target"]),
  identifying: ["code", "target"],
  needsAll: true,
  others: "ignored",
};

/** Maximum number of column names in one sentence for the operator. A file may have thousands. */
const NAMES_SHOWN_MAX = 10;
const NAME_SHOWN_CHARS_MAX = 64;

/** Meaning of the column names in a file's header, or of the members of a JSON object. */
export interface Header {
  /**
   * Meaning of each column, in the order of the file: one of our columns or a template field. Undefined if the column's
   * header is empty, null if the operator left the column out.
   */
  readonly columns: readonly (string | undefined | null)[];
  /**
   * Columns to which the operator assigned a header name that would mean something else by itself. If such a column is
   * a consent, its cells may say yes or no.
   */
  readonly chosen: ReadonlySet<string | null>;
  /** The header names of the columns that the file names differently from us, by our name of the column. */
  readonly ownNames: ReadonlyMap<string, string>;
  /** Template fields whose name says that a recipient opted out, such as `unsubscribed`. */
  readonly optOuts: readonly string[];
  /**
   * Template field that, by the name of its column, may hold the recipient's name; absent if the file has the column
   * `name`.
   */
  readonly nameLike?: string;
}

/** True for a template field, as opposed to a column with a fixed meaning. */
export function isField(column: string): boolean {
  return !RECIPIENT_COLUMNS.known.has(column);
}

/** Returns why a column's name cannot be used; undefined if it can. */
export function columnFault(column: string, { known, others, list }: Columns): string | undefined {
  if (others === "ignored") return undefined;
  if (others === "fields" || known.has(column)) return fieldNameFault(column);
  const asked = askedColumn(column) ?? missedColumn(column);
  const meant = asked !== undefined && known.has(asked) ? `; did you mean ${asked}?` : "";
  if (isOptOutColumn(column))
    return `each row of ${list} is suppressed: keep those that say yes in the column ${shownName(column)}, and remove the column`;
  return `${list} have no column ${shownName(column)}: they have ${ALL_OF.format(known)}${meant}`;
}

/** Shortens a column's name for a sentence. */
export function shownName(column: string): string {
  return shortened(column, NAME_SHOWN_CHARS_MAX);
}

/**
 * Finds the meaning of a header's names. Returns a refusal if two names mean the same column, or if a name might mean a
 * consent and only the operator can tell.
 */
export function toHeader(names: readonly string[], columns: Columns): Header | { readonly refusal: RowRefusal } {
  const found = findMeanings(names, columns);
  const repeated = findRepeated(names, found);
  if (repeated !== undefined) return { refusal: repeated };
  const chosen = new Set(findChosen(names, columns));
  const asked = findAsked(names, found, columns);
  const ofConsent = asked.find(({ meant }) => meant !== "name");
  if (ofConsent !== undefined) return { refusal: { value: ofConsent.name, reason: question(asked) } };
  const [nameLike] = asked;
  const optOuts = findOptOuts(found, columns);
  const ownNames = findOwnNames(names, found);
  return { columns: found, chosen, ownNames, optOuts, ...(nameLike !== undefined && { nameLike: nameLike.column }) };
}

function findOwnNames(names: readonly string[], found: Header["columns"]): Header["ownNames"] {
  const own = new Map<string, string>();
  for (const [index, column] of found.entries())
    if (column != null && fieldName(names[index]!) !== column) own.set(column, names[index]!.trim());
  return own;
}

/**
 * Puts the file's own name of a column before ours in a refusal that begins with it: `X-Handle (username) is neither …`.
 */
export function nameAsInFile(reason: string, { ownNames }: Header): string {
  const [column = ""] = /^\w+/.exec(reason) ?? [];
  const own = ownNames.get(column);
  return own === undefined ? reason : `${shownName(own)} (${column})${reason.slice(column.length)}`;
}

/**
 * Returns the columns that the operator assigned to header names whose meaning would be another one without that
 * choice. Choices that confirm the certain meaning, as the form of a preview sends them, are left out.
 */
function findChosen(names: readonly string[], { known, chosen }: Columns): readonly (string | null)[] {
  if (chosen === undefined) return [];
  return names.flatMap((name) => {
    const choice = chosen.get(fieldName(name));
    return choice === undefined || choice === certainColumn(name, known) ? [] : [choice];
  });
}

/** Returns the meaning of each name in a header, in the form of `Header.columns`. */
export function findMeanings(names: readonly string[], { known, chosen }: Columns): Header["columns"] {
  const certain = names.map((name) => {
    if (name.trim() === "") return undefined;
    const choice = chosen?.get(fieldName(name));
    return choice === undefined ? (certainColumn(name, known) ?? fieldName(name)) : choice;
  });
  const taken = new Set(certain);
  return certain.map((column, index) => {
    const isOpen = column != null && !known.has(column) && chosen?.has(fieldName(names[index]!)) !== true;
    const likely = isOpen ? likelyColumn(names[index]!) : undefined;
    return likely !== undefined && known.has(likely) && !taken.has(likely) ? likely : column;
  });
}

/**
 * Returns the refusal of a header in which two names mean the same column; undefined if none do. Looks at each name
 * only once, because a JSON object may have a million.
 */
function findRepeated(names: readonly string[], found: Header["columns"]): RowRefusal | undefined {
  const first = new Map<string, string>();
  for (const [index, column] of found.entries()) {
    if (column == null) continue;
    const [name, before] = [names[index]!.trim(), first.get(column)];
    if (before !== undefined) {
      const same = `"${shownName(before)}" and "${shownName(name)}" both mean ${shownName(column)}`;
      return { value: name, reason: `${same}: remove one of the two, or rename it` };
    }
    first.set(column, name);
  }
  return undefined;
}

interface Asked {
  readonly column: string;
  readonly name: string;
  readonly meant: string;
}

/**
 * Finds the template fields whose names may mean a column that the file lacks, so that the import asks the operator.
 */
function findAsked(names: readonly string[], found: Header["columns"], columns: Columns): readonly Asked[] {
  const { known, others, chosen } = columns;
  if (others !== "fields") return [];
  const present = new Set(found);
  const asked: Asked[] = [];
  for (const [index, column] of found.entries()) {
    if (column == null || known.has(column) || chosen?.has(fieldName(names[index]!)) === true) continue;
    const meant = askedColumn(names[index]!);
    if (meant === undefined || !known.has(meant) || present.has(meant)) continue;
    asked.push({ column, name: names[index]!.trim(), meant });
    if (asked.length === NAMES_SHOWN_MAX) break;
  }
  return asked;
}

/**
 * Sentences that list the valid words of a consent column. They end the question that asks if a template field is meant
 * as that column.
 */
const WORDS: Readonly<Record<string, string>> = {
  basis: " In basis, each row says opt_in, dm_first or none.",
  tracking: " In tracking, each row says granted, denied or unknown.",
};

function question(asked: readonly Asked[]): string {
  const names = asked.map(({ name }) => `"${shownName(name)}"`);
  const meant = [...new Set(asked.map((one) => one.meant))];
  const unknown = asked.length === 1 ? `the column ${names.join()} is` : `the columns ${ALL_OF.format(names)} are`;
  const words = meant.map((column) => WORDS[column] ?? "").join("");
  return `${unknown} not known: did you mean ${meant.join(", ")}? Consent is not guessed: rename the columns that you mean, and remove or rename the others.${words}`;
}

function findOptOuts(found: Header["columns"], { others }: Columns): Header["optOuts"] {
  if (others !== "fields") return [];
  return found.filter((column) => column != null).filter(isOptOutColumn);
}

/**
 * Reads a file's header. Throws a ServiceError (invalid) if it is unusable, for example because no column identifies a
 * row, or because two names mean the same column.
 */
export function readHeader(names: readonly string[], columns: Columns): Header {
  const refuse = (reason: string): never => {
    throw new ServiceError("invalid", reason);
  };
  if (names.length > COLUMNS_MAX) refuse(`the header has more than ${COLUMNS_MAX} columns`);
  const found = findMeanings(names, columns);
  const named = found.filter((column) => column != null);
  const keys = new Set(names.map(fieldName));
  const absent = [...(columns.chosen?.keys() ?? [])].find((name) => !keys.has(name));
  if (absent !== undefined) refuse(`the mapping names the column ${shownName(absent)}, which the file does not have`);
  if (columns.others === "fields" && named.filter(isField).length > FIELDS_MAX)
    refuse(`more than ${FIELDS_MAX} template fields: remove the columns that your message does not use`);
  const repeated = findRepeated(names, found);
  if (repeated !== undefined) refuse(repeated.reason);
  for (const column of named) {
    const fault = columnFault(column, columns);
    if (fault !== undefined) refuse(columns.others === "fields" ? `"${shownName(column)}": ${fault}` : fault);
  }
  const missing = describeMissing(named, columns);
  if (missing !== undefined) refuse(`${missing} (found: ${listed(named)})${askMissed(names, named, columns)}`);
  const header = toHeader(names, columns);
  return "refusal" in header ? refuse(header.refusal.reason) : header;
}

function describeMissing(named: readonly string[], { identifying, needsAll }: Columns): string | undefined {
  const has = (column: string): boolean => named.includes(column);
  if (needsAll === true)
    return identifying.every(has) ? undefined : `the file needs the columns ${ALL_OF.format(identifying)}`;
  if (identifying.some(has)) return undefined;
  const wanted = EITHER.format(identifying.flatMap((one) => (one === "username" ? [one, "handle"] : [one])));
  return `no column is named ${wanted}`;
}

/**
 * Returns the question "did you mean …?" if a header name resembles an identifying column that the file lacks; empty if
 * no name does.
 */
function askMissed(names: readonly string[], named: readonly string[], { identifying }: Columns): string {
  const meant = names.flatMap((name) => {
    const column = missedColumn(name);
    if (column === undefined || !identifying.includes(column) || named.includes(column)) return [];
    return [`${column} by "${shownName(name.trim())}"`];
  });
  if (meant.length === 0) return "";
  return `: did you mean ${EITHER.format(meant.slice(0, NAMES_SHOWN_MAX))}? Then rename it`;
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_SHOWN_MAX).map(shownName).join(", ");
  return names.length > NAMES_SHOWN_MAX ? `${shown} and ${names.length - NAMES_SHOWN_MAX} more` : shown;
}
