import type { LogStore, Recorded } from "../../events/event-types-and-codec.ts";
import type { Contact, Contacts } from "../../projections/contact-state.ts";
import { csvHead, csvRecord } from "../log/export-formats/csv.ts";
import { exportText, type ExportChunk } from "../log/export-formats/write-export-text.ts";
import { escapeControls } from "../platform/escape-control-characters.ts";
import { inTimeSlices } from "../platform/work-in-time-slices.ts";
import { nameHashKey } from "./suppress.ts";
import type { HashesOf } from "../privacy/suppression-hashes.ts";

const COLUMNS = ["id", "username", "hash", "reason", "suppressed_at"] as const;

/** Row of an exported list of suppressions, which an import can read. */
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

/** Options for how a list of suppressions names recipients. */
interface NamingOptions {
  readonly hashesOf: HashesOf;
  /**
   * True to export the list of suppressions without ids and handles: each row then has the keyed hash of one id or one
   * handle instead.
   */
  readonly isHashed: boolean;
}

export interface ExportSuppressionsOptions extends NamingOptions {
  readonly contacts: Contacts;
  /** Position of the log up to which `contacts` was folded. Suppressions recorded after it are left out. */
  readonly to: number;
  readonly format: SuppressionsFormat;
}

/**
 * Exports all suppressions in chunks: a recipient by name if the log has it, otherwise, as after an erasure, by hash. A
 * log with the same hash key that imports the list suppresses the same recipients. Throws what the store's read throws.
 */
export async function* exportSuppressions(
  log: LogStore,
  { contacts, to, format, ...options }: ExportSuppressionsOptions,
): AsyncGenerator<ExportChunk, void, void> {
  const toRows = createRows(await inTimeSlices(findSuppressed(contacts)), options);
  const { head, line } = FORMATS[format];
  const events = log.read({ types: ["RecipientSuppressed", "PersonForgotten"], to });
  yield* exportText(events, { head, line: (event) => [...toRows(event as Recorded)].map(line).join("") });
}

/**
 * Maps the position of each event about a suppressed contact to that contact. The name in an event may mislead, since
 * another person may have the handle today.
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
 * Creates a function that makes the rows for one suppression event; called in the order of the log. The first event
 * about a recipient gives the reason and the date.
 */
function createRows(
  contactAt: ReadonlyMap<number, Contact>,
  { hashesOf, isHashed }: NamingOptions,
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
