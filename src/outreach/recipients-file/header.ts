import { fieldName, fieldNameFault } from "../../template/field.ts";
import { ServiceError } from "../../platform/service-error.ts";

/** Most template fields a recipient may have. */
export const FIELDS_MAX = 50;

/** The columns that mean something to us. */
const KNOWN_COLUMNS = new Set(["username", "id", "name", "basis"]);

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

/** One entry a column; undefined for a column without a name. */
export type Header = readonly (string | undefined)[];

/** The name under which a column is known here; other columns are template fields under their own name. */
export function columnName(raw: string): string {
  const name = fieldName(raw);
  return SYNONYMS.get(name.replace(/[ _-]+/g, " ")) ?? name;
}

/** True for a template field, as opposed to a column that says who someone is. */
export function isField(column: string): boolean {
  return !KNOWN_COLUMNS.has(column);
}

/** Throws when the header leaves it open who is meant, or when a column is the same as another. */
export function readHeader(cells: readonly string[]): Header {
  const header = cells.map((cell) => (cell.trim() === "" ? undefined : columnName(cell)));
  const named = header.filter((column) => column !== undefined);
  const twice = named.find((column, index) => named.indexOf(column) !== index);
  const fault = named.map(fieldNameFault).find((text) => text !== undefined);
  if (twice !== undefined) throw new ServiceError("invalid", `two columns are named ${twice}`);
  if (fault !== undefined) throw new ServiceError("invalid", fault);
  if (named.filter(isField).length > FIELDS_MAX)
    throw new ServiceError("invalid", `more than ${FIELDS_MAX} template fields`);
  if (!named.includes("username") && !named.includes("id")) {
    throw new ServiceError("invalid", `no column is named username, handle or id (found: ${named.join(", ")})`);
  }
  return header;
}
