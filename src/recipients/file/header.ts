import { ServiceError } from "../../platform/service-error.ts";
import { fieldName, fieldNameFault, shortened } from "../../template/normalize-field.ts";
import { CONSENT_MEMBERS } from "../parse-consent.ts";
import { COLUMNS_MAX } from "./format.ts";
import { ALL_OF, EITHER } from "../../platform/counts-and-lists.ts";
import { askedColumn, certainColumn, isOptOutColumn, likelyColumn, missedColumn } from "./header-names.ts";
import type { RowRefusal } from "./cell-notes.ts";

/** Most template fields a recipient may have. */
export const FIELDS_MAX = 50;

/** The columns that a kind of file may have, and their meaning. */
export interface Columns {
  /** The member that holds the rows if the JSON is an object. */
  readonly list: string;
  readonly known: ReadonlySet<string>;
  /** A row is identified by at least one of these, or by all of them. */
  readonly identifying: readonly string[];
  readonly needsAll?: true;
  /** Meaning of all other columns. */
  readonly others: "fields" | "refused" | "ignored";
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

/** Most names that a sentence shows, and characters of each. A file may have thousands, of any length. */
const NAMES_SHOWN_MAX = 10;
const NAME_SHOWN_CHARS_MAX = 64;

/** The meaning of a file's column names, or of an object's member names. */
export interface Header {
  /** One entry for each column; undefined for a column without a name. */
  readonly columns: readonly (string | undefined)[];
  /** Template fields that say who must not be contacted. */
  readonly optOuts: readonly string[];
  /** A template field that may be the recipient's name, if the file has no column for that. */
  readonly nameLike?: string;
}

/** True for a template field, as opposed to a column with a fixed meaning. */
export function isField(column: string): boolean {
  return !RECIPIENT_COLUMNS.known.has(column);
}

/** Returns why a column cannot be used; undefined if it can. */
export function columnFault(column: string, { known, others, list }: Columns): string | undefined {
  if (others === "ignored") return undefined;
  if (others === "fields" || known.has(column)) return fieldNameFault(column);
  const asked = askedColumn(column) ?? missedColumn(column);
  const meant = asked !== undefined && known.has(asked) ? `; did you mean ${asked}?` : "";
  if (isOptOutColumn(column))
    return `each row of ${list} is suppressed: keep those that say yes in the column ${shownName(column)}, and remove the column`;
  return `${list} have no column ${shownName(column)}: they have ${ALL_OF.format(known)}${meant}`;
}

/** Shortens a name for a sentence. */
export function shownName(column: string): string {
  return shortened(column, NAME_SHOWN_CHARS_MAX);
}

/**
 * Returns the meaning of the names, or why they cannot be used: two mean the same, or one might change a consent by a
 * guess.
 */
export function toHeader(names: readonly string[], columns: Columns): Header | { readonly refusal: RowRefusal } {
  const found = nameColumns(names, columns);
  const repeated = findRepeated(names, found);
  if (repeated !== undefined) return { refusal: repeated };
  const asked = findAsked(names, found, columns);
  const ofConsent = asked.find(({ meant }) => meant !== "name");
  if (ofConsent !== undefined) return { refusal: { value: ofConsent.name, reason: question(asked) } };
  const [nameLike] = asked;
  const optOuts = findOptOuts(found, columns);
  return { columns: found, optOuts, ...(nameLike !== undefined && { nameLike: nameLike.column }) };
}

function nameColumns(names: readonly string[], { known }: Columns): readonly (string | undefined)[] {
  const certain = names.map((name) =>
    name.trim() === "" ? undefined : (certainColumn(name, known) ?? fieldName(name)),
  );
  const taken = new Set(certain);
  return certain.map((column, index) => {
    const likely = column === undefined || known.has(column) ? undefined : likelyColumn(names[index]!);
    return likely !== undefined && known.has(likely) && !taken.has(likely) ? likely : column;
  });
}

/** Looks at each name only once, because an object may have a million. */
function findRepeated(names: readonly string[], found: Header["columns"]): RowRefusal | undefined {
  const first = new Map<string, string>();
  for (const [index, column] of found.entries()) {
    if (column === undefined) continue;
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

/** Returns the template fields that may mean a column that the file does not have. */
function findAsked(names: readonly string[], found: Header["columns"], { known, others }: Columns): readonly Asked[] {
  if (others !== "fields") return [];
  const present = new Set(found);
  const asked: Asked[] = [];
  for (const [index, column] of found.entries()) {
    const meant = column === undefined || known.has(column) ? undefined : askedColumn(names[index]!);
    if (column === undefined || meant === undefined || !known.has(meant) || present.has(meant)) continue;
    asked.push({ column, name: names[index]!.trim(), meant });
    if (asked.length === NAMES_SHOWN_MAX) break;
  }
  return asked;
}

/** The valid words of a consent column, for the question about it. */
const WORDS: Readonly<Record<string, string>> = {
  basis: " In basis, each row says opt_in, dm_first or none.",
  tracking: " In tracking, each row says granted, denied or unknown.",
};

function question(asked: readonly Asked[]): string {
  const names = asked.map(({ name }) => `"${shownName(name)}"`);
  const meant = [...new Set(asked.map((one) => one.meant))];
  const unknown = asked.length === 1 ? `the column ${names.join()} is` : `the columns ${ALL_OF.format(names)} are`;
  const words = meant.map((column) => WORDS[column] ?? "").join("");
  return `${unknown} not known: did you mean ${meant.join(", ")}? Consent is not guessed: rename what you mean, and remove or rename the rest.${words}`;
}

function findOptOuts(found: Header["columns"], { others }: Columns): Header["optOuts"] {
  if (others !== "fields") return [];
  return found.filter((column) => column !== undefined).filter(isOptOutColumn);
}

/**
 * Reads a file's header. Throws a ServiceError (invalid) if it is unusable, as when no column identifies a row or two
 * mean the same.
 */
export function readHeader(names: readonly string[], columns: Columns): Header {
  const refuse = (reason: string): never => {
    throw new ServiceError("invalid", reason);
  };
  if (names.length > COLUMNS_MAX) refuse(`the header has more than ${COLUMNS_MAX} columns`);
  const found = nameColumns(names, columns);
  const named = found.filter((column) => column !== undefined);
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

/** Asks about names that may mean an identifying column that the file lacks. */
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
