import type { Recipient } from "../../events/outreach.ts";
import { type Consent, consentAfter, findMissingEvidence, NO_CONSENT } from "../../projections/consent.ts";
import { findContact } from "../../projections/contact-identity.ts";
import { toRecipient, type Contacts } from "../../projections/contact.ts";
import { STREAMS, type EventMetadata, type NewEvent } from "../log/event-log.ts";
import { handle } from "../log/decide-and-append.ts";
import { nextTurn } from "../platform/time-slices.ts";
import type { ImportedRow } from "./file/unique-recipients.ts";
import { createNaming } from "./suppress.ts";
import type { HashesOf } from "../privacy/suppression-hashes.ts";
import { eraseClicks, findRevokedLinks, type ConsentContext } from "./record-consent.ts";

export interface ImportOptions {
  /**
   * Number of rows that one append writes. For each append the key file writes most of its pages, so few rows make an
   * import slow; many rows delay other appends and block the thread.
   */
  readonly chunkRows: number;
  /** Signal that ends the import between two chunks of rows. */
  readonly signal: AbortSignal;
  /** Callback for progress, with the number of rows that were taken so far. */
  readonly onProgress?: (taken: number) => void;
}

/** Context of an import: the log that it adds to. */
export interface ImportContext extends ConsentContext {
  readonly hashesOf: HashesOf;
}

export type Imported = Awaited<ReturnType<typeof importRecipients>>;

/**
 * Adds or updates the recipients of these rows. After an interruption, the same import takes the rest. Resolves when
 * the projections hold what was taken; throws what the store's append throws.
 */
export async function importRecipients(
  context: ImportContext,
  rows: readonly ImportedRow[],
  metadata: EventMetadata,
  options: ImportOptions,
) {
  const { eventLog, projector } = context;
  let [added, withoutConsent, withoutEvidence, revoked] = [0, 0, 0, 0];
  const fields = new Set<string>();
  const nameSuppressed = createNaming(context.hashesOf);
  const { taken, last } = await appendInChunks(rows, options, {
    append(chunk, before) {
      const contacts = projector.state("contacts");
      added += chunk.filter(({ recipient }) => findContact(contacts, recipient)?.listed !== true).length;
      const missing = chunk.map((row) => findMissingEvidence(consentOnceImported(contacts, row)));
      revoked += chunk.filter((row) => isRevoked(contacts, row)).length;
      withoutConsent += missing.filter(([first]) => first === "basis").length;
      withoutEvidence += missing.filter(([first]) => first !== undefined && first !== "basis").length;
      for (const { recipient } of chunk) for (const name of Object.keys(recipient.fields)) fields.add(name);
      const events = [...chunk.map(toEvent), ...nameSuppressed(contacts, chunk.map(toName))];
      return chunk.some(({ recipient: { tracking } }) => tracking !== undefined && tracking !== "granted")
        ? appendRevoking(context, { chunk, events }, metadata, before)
        : eventLog.append(STREAMS.outreach, events, metadata);
    },
  });
  await projector.until(last);
  return {
    /** Number of rows that were taken: all, or those before an interruption. The other counts are of these rows. */
    taken,
    /** Number of recipients who were not in the list before. */
    added,
    /**
     * Number of rows without a basis for contacting the recipient: neither in the file nor because they wrote first.
     */
    withoutConsent,
    /** Number of rows with a basis for contacting the recipient, but without its date or source. */
    withoutEvidence,
    /** Number of rows that revoke a recipient's consent, by the basis `none`. */
    revoked,
    /** Columns of the file that became template fields, in the order in which rows first have them. */
    fields: [...fields],
  };
}

type Appending = Promise<{ readonly last: number }>;

interface ChunkActions<Row> {
  /**
   * Appends the events of a chunk of rows; undefined if they change nothing. `before`: the append of the chunk before.
   */
  append(chunk: readonly Row[], before: Appending | undefined): Appending | undefined;
  /** Callback after each chunk. `settle` resolves once the chunk is appended, with the newest position so far. */
  afterChunk?(settle: () => Promise<number>): Promise<void>;
}

/** Appends rows chunk by chunk. The next chunk is encoded, with its encryption keys on disk, while one is written. */
export async function appendInChunks<Row>(
  rows: readonly Row[],
  { chunkRows, signal, onProgress }: ImportOptions,
  { append, afterChunk }: ChunkActions<Row>,
): Promise<{ readonly taken: number; readonly last: number }> {
  let [taken, last] = [0, 0];
  let before: Appending | undefined;
  // A chunk that needs no new keys may be appended before the previous one.
  const settle = async (): Promise<number> => (last = Math.max(last, (await before)?.last ?? 0));
  while (taken < rows.length && !signal.aborted) {
    const chunk = rows.slice(taken, taken + chunkRows);
    const appending = append(chunk, before);
    // Awaited in the next round, or never if the chunk before failed.
    appending?.catch(() => {});
    await settle();
    before = appending;
    // The writer thread answers so fast that timers and sockets would otherwise get no turn.
    await nextTurn();
    taken += chunk.length;
    onProgress?.(taken);
    await afterChunk?.(settle);
  }
  await settle();
  return { taken, last };
}

/**
 * Returns the consent that a recipient has after the import. A recipient who wrote to us first has consented,
 * regardless of the file.
 */
function consentOnceImported(contacts: Contacts, { recipient }: ImportedRow): Consent {
  const before = findContact(contacts, recipient) ?? NO_CONSENT;
  return { ...consentAfter(before, recipient), inbound: before.inbound };
}

function isRevoked(contacts: Contacts, row: ImportedRow): boolean {
  const before = findContact(contacts, row.recipient) ?? NO_CONSENT;
  return before.basis !== "none" && consentOnceImported(contacts, row).basis === "none";
}

/**
 * Appends rows that revoke a consent, by a decision on the newest state, so that no personal link is missed that a run
 * sends meanwhile. `before`: the append of the chunk before.
 */
async function appendRevoking(
  context: ConsentContext,
  { chunk, events }: { readonly chunk: readonly ImportedRow[]; readonly events: readonly NewEvent[] },
  metadata: EventMetadata,
  before: Promise<unknown> | undefined,
): Promise<{ readonly last: number }> {
  await before;
  const decide = () => {
    const contacts = context.projector.state("contacts");
    const codes = chunk.flatMap(({ recipient }) => findRevokedLinks(contacts, recipient, recipient));
    return { events: [...events, ...eraseClicks(context.findLinkKeys(codes))] };
  };
  const handled = await handle(context, STREAMS.outreach, decide, { metadata });
  return { last: ("appended" in handled ? handled.appended?.last : undefined) ?? 0 };
}

function toName({ recipient: { id, username } }: ImportedRow): Recipient {
  return toRecipient({ id, username });
}

function toEvent({ recipient: { id, username, ...row } }: ImportedRow): NewEvent {
  return { type: "RecipientAdded", data: { recipient: toRecipient({ id, username }), ...row, source: "list" } };
}
