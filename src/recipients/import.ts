import { findContact, type Contacts } from "../../projections/contacts.ts";
import { STREAMS, type EventLog, type EventMetadata, type NewEvent } from "../log/event-log.ts";
import { nextTurn } from "../platform/time-slices.ts";
import type { Projector } from "../projector/projector.ts";
import type { ImportedRow } from "./recipients-file.ts";

export interface ImportDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
}

export interface ImportOptions {
  /**
   * Rows appended at once: their keys are one transaction of the key file, which writes most of its pages each time.
   * Too many delay other appends, and block the thread.
   */
  readonly chunkRows: number;
  /** Ends the import between two chunks. */
  readonly signal: AbortSignal;
  /** Told how many rows were taken so far. */
  readonly onProgress?: (taken: number) => void;
}

/** What an import came to; beside it stands what the file's reading refused. */
export interface Imported {
  /** Rows that were taken: all but those after an interruption. */
  readonly taken: number;
  /** Of these, recipients who were not in the list before. */
  readonly added: number;
  /** Of these, recipients without a ground for writing to them, neither in the file nor by having written first. */
  readonly withoutConsent: number;
  /** The columns that became template fields, in the order in which they are met. */
  readonly fields: readonly string[];
}

/**
 * Adds or updates the recipients of these rows. Interrupted, the same import again takes the rest. Resolves when the
 * projections hold what was taken; throws what the store's append throws.
 */
export async function importRecipients(
  { eventLog, projector }: ImportDeps,
  rows: readonly ImportedRow[],
  metadata: EventMetadata,
  { chunkRows, signal, onProgress }: ImportOptions,
): Promise<Imported> {
  let [taken, added, withoutConsent] = [0, 0, 0];
  const fields = new Set<string>();
  let before: Promise<{ readonly last: number }> | undefined;
  let last = 0;
  while (taken < rows.length && !signal.aborted) {
    const chunk = rows.slice(taken, taken + chunkRows);
    const contacts = projector.state("contacts");
    added += chunk.filter((row) => !isListed(contacts, row)).length;
    withoutConsent += chunk.filter((row) => !hasConsent(contacts, row)).length;
    for (const { recipient } of chunk) for (const name of Object.keys(recipient.fields)) fields.add(name);
    // Encoded, with its keys on the disk, while the chunk before is written.
    const appending = eventLog.append(STREAMS.outreach, chunk.map(toEvent), metadata);
    // Looked at in the next round, or never when the chunk before failed.
    appending.catch(() => {});
    last = Math.max(last, (await before)?.last ?? 0);
    before = appending;
    // Answers of the writer thread come so fast that timers and sockets would have no turn in between.
    await nextTurn();
    taken += chunk.length;
    onProgress?.(taken);
  }
  // A chunk that needs no new keys may overtake the one before.
  last = Math.max(last, (await before)?.last ?? 0);
  await projector.until(last);
  return { taken, added, withoutConsent, fields: [...fields] };
}

function isListed(contacts: Contacts, { recipient }: ImportedRow): boolean {
  return findContact(contacts, recipient)?.listed === true;
}

/** A recipient who wrote to us first has agreed, whatever the file says. */
function hasConsent(contacts: Contacts, { recipient }: ImportedRow): boolean {
  return recipient.basis !== "none" || findContact(contacts, recipient)?.inbound === true;
}

function toEvent({ recipient: { id, username, name, basis, fields } }: ImportedRow): NewEvent {
  const recipient = { ...(id === undefined ? {} : { id }), ...(username === undefined ? {} : { username }) };
  return {
    type: "RecipientAdded",
    data: { recipient, ...(name === undefined ? {} : { name }), basis, fields, source: "list" },
  };
}
