import type { Recipient } from "../../events/outreach.ts";
import { type Contact, type Contacts, toRecipient } from "../../projections/contact-state.ts";
import { type EventMetadata, STREAMS } from "../log/event-log.ts";
import { inTimeSlices } from "../platform/work-in-time-slices.ts";
import { appendInChunks, type ImportOptions } from "./import.ts";
import type { SuppressionRecord } from "./file/suppression-row.ts";
import type { SuppressionRow } from "./parse-imported-lists.ts";
import { createDecision, type SuppressContext, type Suppression } from "./suppress.ts";
import type { HashesOf } from "../privacy/suppression-hashes.ts";

/**
 * Maximum number of events that the import appends before it waits until the projections hold them. It keeps their
 * hashes in memory until then. More waits would slow the import: one takes as long as several appends.
 */
const ROWS_AHEAD_MAX = 5_000;

/**
 * Suppresses the recipients of these rows. If interrupted, the same import can be repeated and takes the rest. Resolves
 * once the projections hold the `taken` rows (`added`: new suppressions); throws what the store's append throws.
 */
export async function importSuppressions(
  context: SuppressContext,
  rows: readonly SuppressionRow[],
  metadata: EventMetadata,
  options: ImportOptions,
) {
  const { eventLog, projector, hashesOf } = context;
  let [added, ahead] = [0, 0];
  await projector.until((await eventLog.store.streamHead(STREAMS.outreach)).position);
  let decide = createDecision(hashesOf);
  const { taken, last } = await appendInChunks(rows, options, {
    append(chunk) {
      const events = decide(projector.state("contacts"), chunk.map(toSuppression));
      added += events.length;
      ahead += events.length;
      return events.length === 0 ? undefined : eventLog.append(STREAMS.outreach, events, metadata);
    },
    async afterChunk(settle) {
      if (ahead < ROWS_AHEAD_MAX) return;
      await projector.until(await settle());
      decide = createDecision(hashesOf);
      ahead = 0;
    },
  });
  await projector.until(last);
  if (!options.signal.aborted) await nameByHash(context, rows, metadata, options);
  return { taken, added };
}

/**
 * Suppresses by name the known recipients whose hash is in the list: if such a recipient changes handle, no hash in the
 * list fits the new one. Recipients imported later are compared with the hashes in the log.
 */
async function nameByHash(
  { eventLog, projector, hashesOf }: SuppressContext,
  rows: readonly SuppressionRow[],
  metadata: EventMetadata,
  { chunkRows, signal }: ImportOptions,
): Promise<void> {
  const records = new Map<string, SuppressionRecord>();
  for (const { suppression } of rows) {
    const { id: _id, username: _username, hash, ...rest } = suppression;
    if (hash !== undefined && !records.has(hash)) records.set(hash, rest);
  }
  if (records.size === 0) return;
  const found = await inTimeSlices(findByHash(projector.state("contacts"), records, hashesOf));
  const decide = createDecision(hashesOf);
  const { last } = await appendInChunks(
    found,
    { chunkRows, signal },
    {
      append(chunk) {
        const events = decide(projector.state("contacts"), chunk);
        return events.length === 0 ? undefined : eventLog.append(STREAMS.outreach, events, metadata);
      },
    },
  );
  await projector.until(last);
}

/**
 * Finds the known recipients with a hash in the list. A former handle still counts for a recipient if no other contact
 * has it now, as in {@link findContact}.
 */
function* findByHash(
  { people, former, handles }: Contacts,
  records: ReadonlyMap<string, SuppressionRecord>,
  hashesOf: HashesOf,
): Generator<void, readonly Suppression[], void> {
  const found: Suppression[] = [];
  const look = (contact: Contact | undefined, names: Recipient): void => {
    const record = hashesOf(names)
      .map((hash) => records.get(hash))
      .find((one) => one !== undefined);
    if (contact !== undefined && record !== undefined) found.push({ recipient: toRecipient(contact), ...record });
  };
  for (const contact of people.values()) {
    look(contact, contact);
    yield;
  }
  for (const [username, key] of former) {
    if (!handles.has(username)) look(people.get(key), { username });
    yield;
  }
  return found;
}

function toSuppression({ suppression: { id, username, ...rest } }: SuppressionRow): Suppression {
  return id === undefined && username === undefined ? rest : { recipient: toRecipient({ id, username }), ...rest };
}
