import { ServiceError } from "../../platform/service-error.ts";
import { fieldName, fieldNameFault, shortened } from "../../template/normalize-field.ts";
import { CONSENT_MEMBERS } from "../parse-consent.ts";
import { COLUMNS_MAX } from "./format.ts";
import { ALL_OF, EITHER } from "../../platform/counts-and-lists.ts";

/** Most template fields a recipient may have. */
export const FIELDS_MAX = 50;

/** What the columns of a file mean. */
export interface Columns {
  /** The member that holds the rows where the JSON is an object. */
  readonly list: string;
  readonly known: ReadonlySet<string>;
  /** A row is identified by at least one of these. */
  readonly identifying: readonly string[];
  /** Whether all other columns are template fields; if not, they are refused. */
  readonly hasFields: boolean;
}

export const RECIPIENT_COLUMNS: Columns = {
  list: "recipients",
  known: new Set(["username", "id", "name", "timezone", ...CONSENT_MEMBERS]),
  identifying: ["username", "id"],
  hasFields: true,
};

export const SUPPRESSION_COLUMNS: Columns = {
  list: "suppressions",
  known: new Set(["id", "username", "hash", "reason", "suppressed_at"]),
  identifying: ["username", "id", "hash"],
  hasFields: false,
};

/** What people call these columns. Only names that cannot mean anything but the network's own handle or number. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  username: ["handle", "user name", "x handle", "x username", "twitter handle", "twitter username", "screen name"],
  id: ["x id", "x user id", "twitter id", "twitter user id"],
  timezone: ["time zone"],
};
const COLUMN_OF = new Map(Object.entries(SYNONYMS).flatMap(([column, names]) => names.map((name) => [name, column])));

/** Names that a sentence shows, and characters of each: a file may have thousands, of any length. */
const NAMES_SHOWN_MAX = 10;
const NAME_SHOWN_CHARS_MAX = 64;

/** One entry a column; undefined for a column without a name. */
export type Header = readonly (string | undefined)[];

/** The name under which a column is known here; other columns keep their own name. */
export function columnName(raw: string, { known }: Columns): string {
  const name = fieldName(raw);
  const spaced = name.replace(/[ _-]+/g, " ");
  const snake = spaced.replaceAll(" ", "_");
  return COLUMN_OF.get(spaced) ?? (known.has(snake) ? snake : name);
}

/** True for a template field, as opposed to a column that identifies the recipient. */
export function isField(column: string): boolean {
  return !RECIPIENT_COLUMNS.known.has(column);
}

/** Why a column cannot be used; undefined: it can. */
export function columnFault(column: string, { known, hasFields, list }: Columns): string | undefined {
  if (hasFields || known.has(column)) return fieldNameFault(column);
  return `${list} have no column ${shownName(column)}: they have ${ALL_OF.format(known)}`;
}

/** The name as sentences show it. */
export function shownName(column: string): string {
  return shortened(column, NAME_SHOWN_CHARS_MAX);
}

/** Throws when the header leaves it open who is meant, or when a column is the same as another. */
export function readHeader(cells: readonly string[], columns: Columns): Header {
  if (cells.length > COLUMNS_MAX) throw new ServiceError("invalid", `the header has more than ${COLUMNS_MAX} columns`);
  const header = cells.map((cell) => (cell.trim() === "" ? undefined : columnName(cell, columns)));
  const named = header.filter((column) => column !== undefined);
  if (columns.hasFields && named.filter(isField).length > FIELDS_MAX)
    throw new ServiceError("invalid", `more than ${FIELDS_MAX} template fields`);
  const twice = firstRepeated(named);
  const fault = named.map((column) => columnFault(column, columns)).find((text) => text !== undefined);
  if (twice !== undefined) throw new ServiceError("invalid", `two columns are named ${shownName(twice)}`);
  if (fault !== undefined) throw new ServiceError("invalid", fault);
  if (!columns.identifying.some((column) => named.includes(column))) {
    const wanted = EITHER.format(columns.identifying.flatMap((one) => (one === "username" ? [one, "handle"] : [one])));
    throw new ServiceError("invalid", `no column is named ${wanted} (found: ${listed(named)})`);
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
