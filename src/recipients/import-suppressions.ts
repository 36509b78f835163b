import { type Contacts, findContact, toRecipient } from "../../projections/contacts.ts";
import { type EventMetadata, type NewEvent, STREAMS } from "../log/event-log.ts";
import { appendInChunks, type ImportOptions } from "./import.ts";
import type { SuppressionRow } from "./recipients-file.ts";
import { decideSuppression, type HashesOf, type SuppressDeps, type Suppression } from "./suppress.ts";

/**
 * Rows appended before the projections are waited for. On a server that wait takes as long as some appends; the hashes of
 * these rows are kept in memory meanwhile.
 */
const ROWS_AHEAD_MAX = 5_000;

/**
 * Suppresses the recipients of these rows, whatever else is appended meanwhile. Interrupted, the same import again takes
 * the rest. Resolves when the projections hold what was taken: `taken` rows, `added` of them not held before. Throws what
 * the store's append throws.
 */
export async function importSuppressions(
  { eventLog, projector, hashesOf }: SuppressDeps,
  rows: readonly SuppressionRow[],
  metadata: EventMetadata,
  options: ImportOptions,
) {
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
  return { taken, added };
}

/**
 * Makes a function that decides which suppressions the log does not hold, each once: a row that adds nothing to those that
 * it was given before is none.
 */
export function createDecision(hashesOf: HashesOf) {
  const decided = new Set<string>();
  /** The hashes of names that events have: a contact is shown as suppressed only once an event names it. */
  const named = new Set<string>();
  return (contacts: Contacts, suppressions: readonly Suppression[]): readonly NewEvent<"RecipientSuppressed">[] =>
    suppressions.flatMap((suppression) => {
      const { recipient = {} } = suppression;
      const [event] = decideSuppression(contacts, suppression, hashesOf).events;
      if (event === undefined) return [];
      const { hashes = [] } = event.data;
      const names = findContact(contacts, recipient) === undefined ? [] : hashesOf(recipient);
      if (names.every((hash) => named.has(hash)) && hashes.every((hash) => decided.has(hash))) return [];
      for (const hash of names) named.add(hash);
      for (const hash of hashes) decided.add(hash);
      return [event];
    });
}

function toSuppression({ suppression: { id, username, ...rest } }: SuppressionRow): Suppression {
  return id === undefined && username === undefined ? rest : { recipient: toRecipient({ id, username }), ...rest };
}
