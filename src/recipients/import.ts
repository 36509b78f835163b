import type { Recipient } from "../../events/outreach.ts";
import {
  type Consent,
  consentAfterAll,
  findMissingEvidence,
  isConsentLost,
  NO_CONSENT,
} from "../../projections/consent.ts";
import { findContact } from "../../projections/contact-identity.ts";
import { toRecipient, type Contacts } from "../../projections/contact-state.ts";
import { STREAMS, type EventMetadata, type NewEvent } from "../log/event-log.ts";
import { handle } from "../log/decide-and-append.ts";
import { nextTurn } from "../platform/work-in-time-slices.ts";
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
  /** The import calls this after each chunk with the number of rows that it has passed to the log so far. */
  readonly onProgress?: (taken: number) => void;
}

/** Parts of the service that an import uses: the log, the projections, and the hashes of recipients' names. */
export interface ImportContext extends ConsentContext {
  readonly hashesOf: HashesOf;
}

export type Imported = Awaited<ReturnType<typeof importRecipients>>;

/**
 * Adds or updates the recipients of these rows. If interrupted, the same import can be repeated and takes the rest.
 * Resolves once the projections hold all rows taken; throws what the store's append throws.
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
      const events = [...chunk.flatMap(toEvents), ...nameSuppressed(contacts, chunk.map(toName))];
      return chunk.some(({ recipient: { tracking } }) => tracking !== undefined && tracking !== "granted")
        ? appendRevoking(context, { chunk, events }, metadata, before)
        : eventLog.append(STREAMS.outreach, events, metadata);
    },
  });
  await projector.until(last);
  return {
    /** Number of rows taken: all of them, or those before an interruption. The other counts are about these rows. */
    taken,
    /** Number of rows whose recipient was in no list that was imported before. */
    added,
    /**
     * Number of rows whose recipient has no basis for messages: the file gives none, and they did not write to us
     * first.
     */
    withoutConsent,
    /** Number of rows whose recipient has a basis for messages, but without its date or source. */
    withoutEvidence,
    /** Number of rows that take away a recipient's consent, because they give the basis `none`. */
    revoked,
    /** Names of the template fields in the file, in the order in which the rows first have them. */
    fields: [...fields],
  };
}

type Appending = Promise<{ readonly last: number }>;

interface ChunkActions<Row> {
  /**
   * Appends the events of a chunk of rows; returns undefined if it changes nothing. `before`: the append of the
   * previous chunk.
   */
  append(chunk: readonly Row[], before: Appending | undefined): Appending | undefined;
  /**
   * The import calls this after each chunk. `settle` waits for the append of the chunk, and resolves with the newest
   * position so far.
   */
  afterChunk?(settle: () => Promise<number>): Promise<void>;
}

/** Appends rows chunk by chunk. While one chunk is written, the next is already encrypted. */
export async function appendInChunks<Row>(
  rows: readonly Row[],
  { chunkRows, signal, onProgress }: ImportOptions,
  { append, afterChunk }: ChunkActions<Row>,
): Promise<{ readonly taken: number; readonly last: number }> {
  let [taken, last] = [0, 0];
  let before: Appending | undefined;
  // The highest position counts, because a chunk that needs no new keys may overtake the one before it.
  const settle = async (): Promise<number> => (last = Math.max(last, (await before)?.last ?? 0));
  while (taken < rows.length && !signal.aborted) {
    const chunk = rows.slice(taken, taken + chunkRows);
    const appending = append(chunk, before);
    // The next round of the loop awaits this promise. There is no next round if the previous chunk failed, so the
    // rejection is handled here, too.
    appending?.catch(() => {});
    await settle();
    before = appending;
    // The log answers so fast that this loop would never let timers and requests have a turn.
    await nextTurn();
    taken += chunk.length;
    onProgress?.(taken);
    await afterChunk?.(settle);
  }
  await settle();
  return { taken, last };
}

/**
 * Returns the consent that a recipient has after the import. A recipient who wrote to us first keeps that basis,
 * whatever the file says.
 */
function consentOnceImported(contacts: Contacts, { recipient, withdrawals = [] }: ImportedRow): Consent {
  return consentAfterAll(findContact(contacts, recipient) ?? NO_CONSENT, [...withdrawals, recipient]);
}

function isRevoked(contacts: Contacts, row: ImportedRow): boolean {
  const before = findContact(contacts, row.recipient) ?? NO_CONSENT;
  return isConsentLost(before, consentOnceImported(contacts, row), row.recipient);
}

/**
 * Appends rows that revoke a consent. It decides by the newest state, so that links which a run sends to the recipient
 * meanwhile are erased too. `before`: the append of the previous chunk.
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

function toEvents({ recipient: { id, username, ...row }, withdrawals = [] }: ImportedRow): readonly NewEvent[] {
  const recipient = toRecipient({ id, username });
  return [...withdrawals.map((withdrawal) => ({ ...withdrawal, fields: {}, blank: [] })), row].map((added) => ({
    type: "RecipientAdded",
    data: { recipient, ...added, source: "list" },
  }));
}
