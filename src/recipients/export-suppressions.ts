import type { LogStore, Recorded } from "../../events/catalog.ts";
import type { Contact, Contacts } from "../../projections/contacts.ts";
import { csvHead, csvRecord } from "../log/export-formats/csv.ts";
import { exportText, type ExportChunk } from "../log/export-formats/format.ts";
import { escapeControls } from "../platform/escape-controls.ts";
import { inTimeSlices } from "../platform/time-slices.ts";
import { type HashesOf, nameHashKey } from "./suppress.ts";

const COLUMNS = ["id", "username", "hash", "reason", "suppressed_at"] as const;

/** A row of the list, which an import can read. */
type Row = { readonly [Column in (typeof COLUMNS)[number]]?: string | undefined };

const FORMATS = {
  csv: {
    head: csvHead(COLUMNS),
    line: (row: Row) => csvRecord(COLUMNS.map((column) => escapeControls(row[column] ?? ""))),
  },
  jsonl: { head: "", line: (row: Row) => `${JSON.stringify(row)}\n` },
} as const;

export type SuppressionsFormat = keyof typeof FORMATS;
export const SUPPRESSIONS_FORMATS: readonly SuppressionsFormat[] = ["csv", "jsonl"];

export interface ExportSuppressionsOptions {
  readonly contacts: Contacts;
  /** The position of these contacts; later suppressions are left out. */
  readonly to: number;
  readonly hashesOf: HashesOf;
  readonly format: SuppressionsFormat;
  /** Names no recipient: each id and each handle has a separate row with its hash. */
  readonly isHashed: boolean;
}

/**
 * Exports all suppressions in chunks: recipients by name if the log still knows it, all others by hash, also forgotten
 * ones. Imported into a log with the same key, the list suppresses the same recipients. Throws what the store's read
 * throws.
 */
export async function* exportSuppressions(
  log: Pick<LogStore, "read">,
  { contacts, to, format, ...options }: ExportSuppressionsOptions,
): AsyncGenerator<ExportChunk, void, void> {
  const toRows = createRows(await inTimeSlices(findSuppressed(contacts)), options);
  const { head, line } = FORMATS[format];
  const events = log.read({ types: ["RecipientSuppressed", "PersonForgotten"], to });
  yield* exportText(events, { head, line: (event) => [...toRows(event as Recorded)].map(line).join("") });
}

/**
 * Maps positions of events to the suppressed contacts that they are about. Handles change hands, so an event's names
 * may mislead.
 */
function* findSuppressed({ people }: Contacts): Generator<void, ReadonlyMap<number, Contact>, void> {
  const found = new Map<number, Contact>();
  for (const contact of people.values()) {
    if (contact.suppressed) for (const position of contact.positions) found.set(position, contact);
    yield;
  }
  return found;
}

/**
 * Makes the rows of each event, in the order of the log. The first event about a recipient gives the reason and the
 * date.
 */
function createRows(
  contactAt: ReadonlyMap<number, Contact>,
  { hashesOf, isHashed }: Pick<ExportSuppressionsOptions, "hashesOf" | "isHashed">,
): (event: Recorded) => Generator<Row, void, void> {
  const key = nameHashKey(hashesOf);
  const named = new Set<Contact>();
  const hashed = new Set<string>();

  function* toHashRows(hashes: readonly string[], rest: Row): Generator<Row, void, void> {
    for (const hash of hashes) if (hashed.size < hashed.add(hash).size) yield { hash: `${key}.${hash}`, ...rest };
  }

  return function* toRows({ type, data, time, position }) {
    if (type === "PersonForgotten") yield* toHashRows(data.hashes, { reason: "forgotten", suppressed_at: time });
    if (type !== "RecipientSuppressed") return;
    const { reason, reason_text, suppressed_at = time, hashes = [] } = data;
    const rest = { reason: reason === "list" ? (reason_text ?? reason) : reason, suppressed_at };
    const contact = contactAt.get(position);
    if (contact !== undefined && !named.has(contact)) {
      named.add(contact);
      const { id, username } = contact;
      const own = hashesOf(contact);
      if (isHashed) yield* toHashRows(own, rest);
      else if (id !== undefined || username !== undefined) yield { id, username, ...rest };
      for (const hash of own) hashed.add(hash);
    }
    yield* toHashRows(hashes, rest);
  };
}
