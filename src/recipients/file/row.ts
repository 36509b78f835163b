import type { ConsentRecord } from "../../../projections/consent.ts";
import { parseTimezone } from "../../platform/parse-timezone.ts";
import { isFault, parseConsent } from "../parse-consent.ts";
import { readHandle, readId } from "./id-and-handle.ts";
import { columnFault, FIELDS_MAX, isField, RECIPIENT_COLUMNS, type Columns } from "./header.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";

/** Longest value of a field, in characters: a tenth of the longest message. */
const VALUE_CHARS_MAX = 1000;

/** Column to text. A map, so that no column name can reach a prototype. */
export type Cells = Map<string, string>;

/** A row as the file's format gives it, before its values are looked at. */
export type FileRow =
  { readonly line: number; readonly cells: Cells } | { readonly line: number; readonly refused: RowRefusal };

/** What cannot be used, and why. */
export interface RowRefusal {
  /** As it stands in the file. */
  readonly value: string;
  readonly reason: string;
}

/** At least one of `id` and `username` is there; absent: the row says nothing of it. `fields` has no prototype. */
export interface ImportedRecipient extends ConsentRecord {
  readonly id?: string;
  /** As it was written, without @ and address: compare it in lower case. */
  readonly username?: string;
  readonly name?: string;
  /** IANA name of the zone that they live in. */
  readonly timezone?: string;
  readonly fields: Readonly<Record<string, string>>;
  /** Columns that the row leaves blank: `name`, `timezone` and template fields. */
  readonly blank: string[];
}

/** The recipient, or what of the row cannot be used. `now`: in ms since 1970. */
export function readRow(cells: Cells, now: number): ImportedRecipient | RowRefusal {
  const refusal = findRefusal(cells, RECIPIENT_COLUMNS);
  if (refusal !== undefined) return refusal;
  const cell = (column: string): string => cells.get(column) ?? "";
  const id = readId(cell("id"));
  const username = readHandle(cell("username"));
  if (typeof id === "object") return { value: cell("id"), reason: id.fault };
  if (typeof username === "object") return { value: cell("username"), reason: username.fault };
  if (id === undefined && username === undefined) {
    return { value: [...cells.values()].join(", "), reason: "neither a username nor an id" };
  }
  const consent = parseConsent((member) => cells.get(member), now);
  if (isFault(consent)) return { value: cell(consent.member), reason: consent.reason };
  const zone = cell("timezone").trim();
  const timezone = parseTimezone(zone);
  if (zone !== "" && timezone === undefined) {
    return { value: zone, reason: "timezone is no IANA time zone such as Europe/Berlin" };
  }
  const name = (cells.get("name") ?? "").trim();
  return {
    ...omitUndefined({ id, username, name: name === "" ? undefined : name, timezone }),
    ...consent,
    ...readFields(cells),
  };
}

function readFields(cells: Cells): Pick<ImportedRecipient, "fields" | "blank"> {
  const fields: Record<string, string> = Object.create(null);
  const blank: string[] = [];
  for (const [column, value] of cells) {
    const text = value.trim();
    if (text === "" && (isField(column) || CLEARED_BY_BLANK.has(column))) blank.push(column);
    else if (isField(column)) fields[column] = text;
  }
  return { fields, blank };
}

/** Columns besides the template fields whose blank cell takes back what was recorded. No blank cell changes a consent. */
const CLEARED_BY_BLANK = new Set(["name", "timezone"]);

/** What of a row cannot be used, whatever its columns mean. */
export function findRefusal(cells: Cells, columns: Columns): RowRefusal | undefined {
  let fields = 0;
  for (const [column, value] of cells) {
    const reason = columnFault(column, columns);
    if (reason !== undefined) return { value: column, reason };
    if (column === "") return { value, reason: "a field without a name" };
    if (columns.hasFields && isField(column) && ++fields > FIELDS_MAX)
      return { value: column, reason: `more than ${FIELDS_MAX} template fields` };
    if (value.length > VALUE_CHARS_MAX)
      return { value, reason: `${column} has more than ${VALUE_CHARS_MAX} characters` };
    // The mark that a program leaves where it could not read a character: the original is lost.
    if (value.includes("\uFFFD")) {
      return { value, reason: `${column} holds damaged characters (the file was once read in a wrong encoding)` };
    }
  }
  return undefined;
}
