import type { Encoded, NewEvent } from "eventstore-lite";
import { ciphertextOf, openData, ownerOf, encryptData, type Opened } from "./encrypted-data.ts";
import type { Owner, Personal, Encryptor } from "./encryption.ts";

/** Closes and opens what is personal of events. */
export interface Ciphertexts {
  /** Makes the keys that these events want. */
  prepare(events: readonly NewEvent[], personalOf: (event: NewEvent) => Personal | undefined): void;
  /** The event as the log holds it. */
  close(personal: Personal | undefined, event: NewEvent): Encoded;
  open(personal: Personal | undefined, stored: Stored): Opened;
  /** Whether an event that was closed here would open as it was given: once, and not after a deletion. */
  isOpen(personal: Personal | undefined, event: NewEvent): boolean;
  /** At an event with which keys were deleted: whoever comes to it reads from then on without them. */
  dropDeletedAt(type: string): void;
  /** How often somebody came to such an event. */
  deletions(): number;
}

/** What is needed of an event to open it. */
export interface Stored {
  /** Undefined in a fold. */
  readonly id: string | undefined;
  readonly type: string;
  readonly data: unknown;
}

/** Events held until they come back: a good part of a second of full load. */
const FRESH_MAX = 16_384;

/** With these events keys are deleted. */
const DELETING: ReadonlySet<string> = new Set(["PersonForgotten", "PersonalDataExpired"]);

export function createCiphertexts(encryptor: Encryptor | undefined): Ciphertexts {
  /** Closed here, and not yet read by who follows the log. */
  const fresh = new Set<string>();
  let deletions = 0;

  return {
    prepare(events, personalOf) {
      const owners: Owner[] = [];
      for (const event of events) {
        const personal = personalOf(event);
        if (personal !== undefined) owners.push(ownerOf(personal, event.data));
      }
      if (owners.length > 0) encryptor?.prepare(owners);
    },
    close(personal, event) {
      if (personal === undefined) return event;
      const closed = encryptor && encryptData(personal, event, encryptor);
      if (fresh.size >= FRESH_MAX) fresh.clear();
      if (closed?.isErased === true) fresh.delete(event.id);
      else fresh.add(event.id);
      return closed === undefined ? event : closed.event;
    },
    open(personal, stored) {
      const ciphertext = personal === undefined ? undefined : ciphertextOf(stored.data);
      if (personal === undefined || ciphertext === undefined) return { data: stored.data, erased: false };
      return openData(personal, stored, ciphertext, encryptor);
    },
    isOpen: (personal, { id }) => personal === undefined || fresh.delete(id),
    dropDeletedAt(type) {
      if (!DELETING.has(type)) return;
      deletions++;
      fresh.clear();
      encryptor?.refresh();
    },
    deletions: () => deletions,
  };
}
