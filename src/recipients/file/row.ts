import { fieldNameFault } from "../../template/field.ts";
import { readHandle, readId } from "./identity.ts";
import { FIELDS_MAX, isField, shortened } from "./header.ts";

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

export type Basis = "dm_first" | "opt_in" | "none";

/** At least one of `id` and `username` is there. Blank values are left out. `fields` has no prototype. */
export interface ImportedRecipient {
  readonly id?: string;
  /** As it was written, without @ and address: compare it in lower case. */
  readonly username?: string;
  readonly name?: string;
  readonly basis: Basis;
  readonly fields: Readonly<Record<string, string>>;
}

/** Of a cell that is no basis: enough to find it by. */
const BASIS_CHARS_SHOWN = 40;

const BASES = new Map<string, Basis>([
  ["", "none"],
  ["none", "none"],
  ["dm_first", "dm_first"],
  ["opt_in", "opt_in"],
]);

/** The recipient, or what of the row cannot be used. */
export function readRow(cells: Cells): ImportedRecipient | RowRefusal {
  const refusal = findRefusal(cells);
  if (refusal !== undefined) return refusal;
  const cell = (column: string): string => cells.get(column) ?? "";
  const id = readId(cell("id"));
  const username = readHandle(cell("username"));
  if (typeof id === "object") return { value: cell("id"), reason: id.fault };
  if (typeof username === "object") return { value: cell("username"), reason: username.fault };
  if (id === undefined && username === undefined) {
    return { value: [...cells.values()].join(", "), reason: "neither a username nor an id" };
  }
  const basis = readBasis(cell("basis"));
  if (basis === undefined) {
    const given = JSON.stringify(shortened(cell("basis"), BASIS_CHARS_SHOWN));
    return { value: cell("basis"), reason: `basis must be dm_first, opt_in or none; got ${given}` };
  }
  const name = (cells.get("name") ?? "").trim();
  return {
    ...(id === undefined ? {} : { id }),
    ...(username === undefined ? {} : { username }),
    ...(name === "" ? {} : { name }),
    basis,
    fields: readFields(cells),
  };
}

/** `Opt-In`, `opt in` and `opt_in` are one. */
function readBasis(raw: string): Basis | undefined {
  return BASES.get(
    raw
      .trim()
      .toLowerCase()
      .replace(/[\s_-]+/g, "_"),
  );
}

function readFields(cells: Cells): Record<string, string> {
  const fields: Record<string, string> = Object.create(null);
  for (const [column, value] of cells) {
    const text = value.trim();
    if (isField(column) && text !== "") fields[column] = text;
  }
  return fields;
}

function findRefusal(cells: Cells): RowRefusal | undefined {
  let fields = 0;
  for (const [column, value] of cells) {
    const reason = fieldNameFault(column);
    if (reason !== undefined) return { value: column, reason };
    if (column === "") return { value, reason: "a field without a name" };
    if (isField(column) && ++fields > FIELDS_MAX)
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
