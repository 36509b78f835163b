import { ServiceError } from "../../platform/service-error.ts";
import { fieldName, fieldNameFault, shortened } from "../../template/field.ts";
import { CONSENT_MEMBERS } from "../parse-consent.ts";
import { COLUMNS_MAX } from "./format.ts";

/** Most template fields a recipient may have. */
export const FIELDS_MAX = 50;

/** The columns that mean something to us. */
const KNOWN_COLUMNS: ReadonlySet<string> = new Set(["username", "id", "name", ...CONSENT_MEMBERS]);

/** What people call these columns. Only names that cannot mean anything but the network's own handle or number. */
const SYNONYMS = new Map([
  ["handle", "username"],
  ["user name", "username"],
  ["x handle", "username"],
  ["x username", "username"],
  ["twitter handle", "username"],
  ["twitter username", "username"],
  ["screen name", "username"],
  ["x id", "id"],
  ["x user id", "id"],
  ["twitter id", "id"],
  ["twitter user id", "id"],
]);

/** Names that a sentence shows, and characters of each: a file may have thousands, of any length. */
const NAMES_SHOWN_MAX = 10;
const NAME_SHOWN_CHARS_MAX = 64;

/** One entry a column; undefined for a column without a name. */
export type Header = readonly (string | undefined)[];

/** The name under which a column is known here; other columns are template fields under their own name. */
export function columnName(raw: string): string {
  const name = fieldName(raw);
  const spaced = name.replace(/[ _-]+/g, " ");
  const snake = spaced.replaceAll(" ", "_");
  return SYNONYMS.get(spaced) ?? (KNOWN_COLUMNS.has(snake) ? snake : name);
}

/** True for a template field, as opposed to a column that identifies the recipient. */
export function isField(column: string): boolean {
  return !KNOWN_COLUMNS.has(column);
}

/** The name as sentences show it. */
export function shownName(column: string): string {
  return shortened(column, NAME_SHOWN_CHARS_MAX);
}

/** Throws when the header leaves it open who is meant, or when a column is the same as another. */
export function readHeader(cells: readonly string[]): Header {
  if (cells.length > COLUMNS_MAX) throw new ServiceError("invalid", `the header has more than ${COLUMNS_MAX} columns`);
  const header = cells.map((cell) => (cell.trim() === "" ? undefined : columnName(cell)));
  const named = header.filter((column) => column !== undefined);
  if (named.filter(isField).length > FIELDS_MAX)
    throw new ServiceError("invalid", `more than ${FIELDS_MAX} template fields`);
  const twice = firstRepeated(named);
  const fault = named.map(fieldNameFault).find((text) => text !== undefined);
  if (twice !== undefined) throw new ServiceError("invalid", `two columns are named ${shownName(twice)}`);
  if (fault !== undefined) throw new ServiceError("invalid", fault);
  if (!named.includes("username") && !named.includes("id")) {
    throw new ServiceError("invalid", `no column is named username, handle or id (found: ${listed(named)})`);
  }
  return header;
}

function firstRepeated(names: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return names.find((name) => seen.size === seen.add(name).size);
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_SHOWN_MAX).map(shownName).join(", ");
  return names.length > NAMES_SHOWN_MAX ? `${shown} and ${names.length - NAMES_SHOWN_MAX} more` : shown;
}
