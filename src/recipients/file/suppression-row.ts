import type { SuppressionReason } from "../../../events/outreach.ts";
import { cleanValue } from "../../template/normalize-field.ts";
import { parseDay } from "../parse-day.ts";
import { SUPPRESSION_COLUMNS } from "./header.ts";
import type { RowRefusal } from "./cell-notes.ts";
import { readId, readListedHandle } from "./id-and-handle.ts";
import { type CellRow, clearBlankWord, findRefusal, type ReadOptions, refuseUnnamed } from "./row.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";

/** Maximum length of the reason for a suppression in a list, in characters: a sentence. */
export const REASON_CHARS_MAX = 500;

/** Why and when a recipient was suppressed, without the recipient. */
export interface SuppressionRecord {
  readonly reason: SuppressionReason;
  /** Reason for the suppression, in the words of the list that was imported. */
  readonly reason_text?: string;
  /** When the recipient was suppressed elsewhere, according to the imported list, ISO 8601. */
  readonly suppressed_at?: string;
}

/**
 * Suppression in an imported list. At least one of `id`, `username` and `hash` is present; `username` is as written.
 */
export interface ImportedSuppression extends SuppressionRecord {
  readonly id?: string;
  readonly username?: string;
  /** Keyed hash of an id or a handle, without the name of the key. */
  readonly hash?: string;
}

/** Matches a hash as an export writes it: the name of the hash key, a dot, and the hash. */
const HASH = /^([0-9a-f]{8})\.([A-Za-z0-9_-]{43})$/;

/**
 * Returns the row's suppression or, if the row cannot be used, the refused value and the reason. `hashKey`: name of
 * this log's hash key; hashes made with another key match no recipient here, so they are refused.
 */
export function readSuppression(
  row: CellRow,
  { now, dates }: ReadOptions,
  hashKey: string,
): ImportedSuppression | { readonly refusal: RowRefusal } {
  const { cells } = row;
  const cell = (column: string): string => (cells.get(column) ?? "").trim();
  const refuse = (value: string, reason: string) => ({ refusal: { value, reason } });
  const refusal = findRefusal(cells, SUPPRESSION_COLUMNS);
  if (refusal !== undefined) return { refusal };
  for (const column of ["id", "username"]) clearBlankWord(row, column);
  const id = readId(cell("id"));
  const username = readListedHandle(cell("username"));
  if (typeof id === "object") return refuse(cell("id"), id.fault);
  if (typeof username === "object") return refuse(cell("username"), username.fault);
  const [isHash, keyOfHash, hash] = HASH.exec(cell("hash")) ?? [];
  if (cell("hash") !== "" && isHash === undefined)
    return refuse(cell("hash"), "hash is not in the format of reachlog suppressions export");
  if (hash !== undefined && keyOfHash !== hashKey)
    return refuse(cell("hash"), "hash was made with the key of another log, and matches no recipient here");
  if (id === undefined && username === undefined && hash === undefined)
    return { refusal: refuseUnnamed(row, "neither a username, an id nor a hash") };
  const text = cleanValue(cell("reason")) ?? "";
  if (text.length > REASON_CHARS_MAX) return refuse(text, `reason has more than ${REASON_CHARS_MAX} characters`);
  const at = cell("suppressed_at");
  const suppressed_at = at === "" ? undefined : parseDay(at, now, dates);
  if (typeof suppressed_at === "object") return refuse(at, `suppressed_at ${suppressed_at.fault}`);
  return {
    ...omitUndefined({ id, username, hash }),
    ...parseReason(text),
    ...omitUndefined({ suppressed_at }),
  };
}

/**
 * Reads the reason of a suppression. `Opt-Out`, `opt out` and `opt_out` count as the same known reason; any other text
 * is kept as it is.
 */
function parseReason(text: string): SuppressionRecord {
  const word = text.toLowerCase().replace(/[\s_-]+/g, "_");
  if (word === "by_hand" || word === "opt_out" || word === "opt_out_page") return { reason: word };
  return { reason: "list", ...(word === "" || word === "list" ? {} : { reason_text: text }) };
}
