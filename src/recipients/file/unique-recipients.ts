import { isSameTopic, type ConsentRecord } from "../../../projections/consent.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import type { RowRefusal } from "./cell-notes.ts";
import type { ImportedRecipient } from "./row.ts";

export interface ImportedRow {
  readonly line: number;
  readonly recipient: ImportedRecipient;
  /**
   * Withdrawals in earlier rows about the same recipient, in the file's order, of consents that this row does not
   * mention. Absent if there are none.
   */
  readonly withdrawals?: readonly ConsentRecord[];
}

/** Note that the row at `line` replaced an earlier row, at line `of`, about the same recipient. */
export interface Duplicate {
  readonly line: number;
  readonly of: number;
}

/**
 * Collects the rows of a file and keeps the last one for each recipient. Rows with the same id or handle are about the
 * same recipient.
 */
export function createPeople() {
  const kept = new Set<ImportedRow>();
  const byId = new Map<string, ImportedRow>();
  const byUsername = new Map<string, ImportedRow>();
  const duplicates: Duplicate[] = [];

  /** Adds a row. Returns the refusal if its handle has another id on an earlier line; else undefined. */
  function add(row: ImportedRow): RowRefusal | undefined {
    const { id } = row.recipient;
    const username = row.recipient.username?.toLowerCase();
    const sameId = id === undefined ? undefined : byId.get(id);
    const sameName = username === undefined ? undefined : byUsername.get(username);
    if (sameName?.recipient.id !== undefined && id !== undefined && sameName.recipient.id !== id) {
      return { value: id, reason: `@${username} has another id on line ${sameName.line}` };
    }
    let held = row;
    if (sameId !== undefined) held = replace(sameId, held);
    if (sameName !== undefined && sameName !== sameId) held = replace(sameName, held);
    kept.add(held);
    if (id !== undefined) byId.set(id, held);
    if (username !== undefined) byUsername.set(username, held);
    return undefined;
  }

  /**
   * Removes an earlier row of the same recipient. Returns the new row, with what the earlier rows revoked.
   */
  function replace(earlier: ImportedRow, row: ImportedRow): ImportedRow {
    const { id, username } = earlier.recipient;
    kept.delete(earlier);
    if (id !== undefined) byId.delete(id);
    if (username !== undefined) byUsername.delete(username.toLowerCase());
    duplicates.push({ line: row.line, of: earlier.line });
    return withRevocations(row, earlier);
  }

  return { add, duplicates, rows: () => [...kept] };
}

/**
 * Adds to the new row the withdrawals in an earlier row about the same recipient, except those of consents that the new
 * row mentions.
 */
function withRevocations(row: ImportedRow, earlier: ImportedRow): ImportedRow {
  const { basis, tracking, consent_for: name } = row.recipient;
  const { tracking: earlierTracking, tracking_at, tracking_source, tracking_text } = earlier.recipient;
  const withdrawal = findWithdrawal(earlier.recipient);
  const withdrawn = withdrawal?.consent_for;
  const isSame = name === undefined || withdrawn === undefined ? name === withdrawn : isSameTopic(name, withdrawn);
  const isOther = basis !== undefined && !isSame;
  const withdrawals = [
    ...(earlier.withdrawals ?? []),
    ...(row.withdrawals ?? []),
    ...(withdrawal !== undefined && isOther ? [withdrawal] : []),
  ];
  const revoked = {
    ...(basis === undefined && withdrawal),
    ...(tracking === undefined &&
      earlierTracking === "denied" && { tracking: earlierTracking, tracking_at, tracking_source, tracking_text }),
  };
  const recipient = { ...row.recipient, ...omitUndefined(revoked) };
  return { line: row.line, recipient, ...(withdrawals.length > 0 && { withdrawals }) };
}

/** Returns the part of a row that withdraws a consent to messages; undefined if the row withdraws none. */
function findWithdrawal(recipient: ImportedRecipient): ConsentRecord | undefined {
  const { basis, consent_at, consent_source, consent_text, consent_for } = recipient;
  if (basis !== "none") return undefined;
  return { basis, ...omitUndefined({ consent_at, consent_source, consent_text, consent_for }) };
}
