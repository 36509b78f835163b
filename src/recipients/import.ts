import type { Recipient } from "../../events/outreach.ts";
import { type Consent, consentAfter, findMissingEvidence, NO_CONSENT } from "../../projections/consent.ts";
import { findContact, toRecipient, type Contacts } from "../../projections/contacts.ts";
import { STREAMS, type EventMetadata, type NewEvent } from "../log/event-log.ts";
import { handle } from "../log/decide-and-append.ts";
import { nextTurn } from "../platform/time-slices.ts";
import type { ImportedRow } from "./file/unique-recipients.ts";
import { createNaming, type HashesOf } from "./suppress.ts";
import { eraseClicks, findRevokedLinks, type RecordConsentDeps } from "./record-consent.ts";

export interface ImportOptions {
  /**
   * Rows appended at once. Their keys are one transaction of the key file, which writes most of its pages each time.
   * Too many rows delay other appends and block the thread.
   */
  readonly chunkRows: number;
  /** Ends the import between two chunks. */
  readonly signal: AbortSignal;
  /** Called with the number of rows that were taken so far. */
  readonly onProgress?: (taken: number) => void;
}

export interface ImportDeps extends RecordConsentDeps {
  readonly hashesOf: HashesOf;
}

export type Imported = Awaited<ReturnType<typeof importRecipients>>;

/**
 * Adds or updates the recipients of these rows. After an interruption, the same import takes the rest. Resolves when
 * the projections hold what was taken; throws what the store's append throws.
 */
export async function importRecipients(
  deps: ImportDeps,
  rows: readonly ImportedRow[],
  metadata: EventMetadata,
  options: ImportOptions,
) {
  const { eventLog, projector } = deps;
  let [added, withoutConsent, withoutEvidence, revoked] = [0, 0, 0, 0];
  const fields = new Set<string>();
  const nameSuppressed = createNaming(deps.hashesOf);
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
        ? appendRevoking(deps, { chunk, events }, metadata, before)
        : eventLog.append(STREAMS.outreach, events, metadata);
    },
  });
  await projector.until(last);
  return {
    /** Rows that were taken: all, or those before an interruption. The other counts are of these. */
    taken,
    /** Recipients who were not in the list before. */
    added,
    /** Rows without a basis for contacting the recipient: neither in the file nor because they wrote first. */
    withoutConsent,
    /** Rows with such a basis, but without its date or source. */
    withoutEvidence,
    /** Rows that revoke a recipient's consent, by the basis `none`. */
    revoked,
    /** The columns that became template fields, in the order of the rows. */
    fields: [...fields],
  };
}

type Appending = Promise<{ readonly last: number }>;

interface ChunkActions<Row> {
  /**
   * Appends the events of a chunk; `before` is the append of the chunk before. Undefined if the chunk changes nothing.
   */
  append(chunk: readonly Row[], before: Appending | undefined): Appending | undefined;
  /** `settle` resolves when the chunk is appended, with the newest position so far. */
  afterChunk?(settle: () => Promise<number>): Promise<void>;
}

/** Appends rows chunk by chunk. Each chunk is encoded, with its keys on disk, while the one before is written. */
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

/** A recipient who wrote to us first has consented, regardless of the file. */
function consentOnceImported(contacts: Contacts, { recipient }: ImportedRow): Consent {
  const before = findContact(contacts, recipient) ?? NO_CONSENT;
  return { ...consentAfter(before, recipient), inbound: before.inbound };
}

function isRevoked(contacts: Contacts, row: ImportedRow): boolean {
  const before = findContact(contacts, row.recipient) ?? NO_CONSENT;
  return before.basis !== "none" && consentOnceImported(contacts, row).basis === "none";
}

/**
 * Appends rows as decided on the newest state, so that no personal link that a run sends meanwhile is missed. `before`
 * is the append of the chunk before.
 */
async function appendRevoking(
  deps: RecordConsentDeps,
  { chunk, events }: { readonly chunk: readonly ImportedRow[]; readonly events: readonly NewEvent[] },
  metadata: EventMetadata,
  before: Promise<unknown> | undefined,
): Promise<{ readonly last: number }> {
  await before;
  const decide = () => {
    const contacts = deps.projector.state("contacts");
    const codes = chunk.flatMap(({ recipient }) => findRevokedLinks(contacts, recipient, recipient));
    return { events: [...events, ...eraseClicks(deps.findLinkKeys(codes))] };
  };
  const handled = await handle(deps, STREAMS.outreach, decide, { metadata });
  return { last: ("appended" in handled ? handled.appended?.last : undefined) ?? 0 };
}

function toName({ recipient: { id, username } }: ImportedRow): Recipient {
  return toRecipient({ id, username });
}

function toEvent({ recipient: { id, username, ...row } }: ImportedRow): NewEvent {
  return { type: "RecipientAdded", data: { recipient: toRecipient({ id, username }), ...row, source: "list" } };
}
