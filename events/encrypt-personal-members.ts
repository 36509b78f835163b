import { andThen, type Awaitable, type Encoded, type NewEvent } from "eventstore-lite";
import {
  ciphertextOf,
  contextOf,
  divide,
  encryptDivided,
  openedWith,
  ownerOf,
  type Divided,
  type Opened,
} from "./divide-and-encrypt-personal-data.ts";
import type { EncryptionKey, Encryptor, Personal } from "./declare-personal-members.ts";

/** Encrypts and decrypts the personal members of events. */
export interface Ciphertexts {
  /** Encrypts the events of one append, and returns them as the log stores them. */
  close(events: readonly NewEvent[]): Awaitable<readonly Encoded[]>;
  open(stored: readonly Stored[]): Awaitable<readonly Opened[]>;
  /**
   * True if a reader may get the event as it was before encryption, without decrypting it. For an event with personal
   * data, only the first call returns true, and none does after encryption keys were deleted.
   */
  isOpen(event: NewEvent): boolean;
  /**
   * The codec calls this with the type of each event that it reads. If events of that type delete encryption keys,
   * later events are decrypted again, and cached keys are checked before they are used.
   */
  dropDeletedAt(type: string): void;
  /** Returns how many of the events read so far deleted encryption keys. */
  deletions(): number;
}

/** The parts of an event that are needed to decrypt it. */
export interface Stored {
  /** Id of the event; undefined if a fold reads it, because folds get no ids. */
  readonly id: string | undefined;
  readonly type: string;
  readonly data: unknown;
}

/** Personal members of one event in a list; `at` is the event's index. */
interface Part {
  readonly at: number;
  readonly personal: Personal;
  readonly divided: Divided;
}

interface Closed extends Omit<Part, "divided"> {
  readonly ciphertext: string;
}

/** Maximum number of ids in the set `fresh`: about as many events as are appended in a second under full load. */
const FRESH_MAX = 16_384;

/** Event types that delete encryption keys. */
const DELETING: ReadonlySet<string> = new Set(["PersonForgotten", "PersonalDataExpired"]);

/**
 * Creates the encryption of personal members. Without an encryptor nothing is encrypted, and every ciphertext reads as
 * erased.
 */
export function createCiphertexts(
  personalOf: (type: string) => Personal | undefined,
  encryptor: Encryptor | undefined,
): Ciphertexts {
  /** Ids of events that this process encrypted and has not yet read back from the log. */
  const fresh = new Set<string>();
  let deletions = 0;

  const noteFresh = (id: string): void => {
    if (fresh.size >= FRESH_MAX) fresh.clear();
    fresh.add(id);
  };

  /**
   * Encrypts the events and notes their ids in `fresh`, so that this process need not decrypt them when it reads them
   * back. If keys were deleted after `asOf`, no id is noted: the events are decrypted, so that data without a key reads
   * as erased.
   */
  const closeAll = (
    events: readonly NewEvent[],
    parts: readonly Part[],
    keys: readonly EncryptionKey[],
    asOf: number,
  ): Encoded[] => {
    const closed: Encoded[] = [...events];
    for (const [index, { at, personal, divided }] of parts.entries()) {
      const [event, key] = [events[at]!, keys[index]!];
      if (key.key === undefined || asOf !== deletions) fresh.delete(event.id);
      else noteFresh(event.id);
      closed[at] = encryptDivided(personal, event, divided, key);
    }
    return closed;
  };

  return {
    close(events) {
      const parts: Part[] = [];
      for (const [at, event] of events.entries()) {
        const personal = personalOf(event.type);
        if (personal === undefined) continue;
        const divided = encryptor && divide(personal, event.data);
        if (divided === undefined) noteFresh(event.id);
        else parts.push({ at, personal, divided });
      }
      if (encryptor === undefined || parts.length === 0) return events;
      const owners = parts.map(({ at, personal }) => ownerOf(personal, events[at]!.data));
      const asOf = deletions;
      return andThen(encryptor.keysFor(owners), (keys) => closeAll(events, parts, keys, asOf));
    },
    open(stored) {
      const closed: Closed[] = [];
      const opened: Opened[] = stored.map(({ type, data }, at) => {
        const personal = personalOf(type);
        const ciphertext = personal && ciphertextOf(data);
        if (personal !== undefined && ciphertext !== undefined) closed.push({ at, personal, ciphertext });
        return { data, erased: false };
      });
      if (closed.length === 0) return opened;
      const ciphertexts = closed.map(({ at, personal, ciphertext }) => {
        const { id, type } = stored[at]!;
        return { ciphertext, context: contextOf(personal, type, id) };
      });
      return andThen(encryptor?.open(ciphertexts) ?? [], (texts) => {
        for (const [index, { at, personal, ciphertext }] of closed.entries()) {
          opened[at] = openedWith(personal, stored[at]!, texts[index], encryptor?.markOf(ciphertext) ?? "");
        }
        return opened;
      });
    },
    isOpen: ({ id, type }) => personalOf(type) === undefined || fresh.delete(id),
    dropDeletedAt(type) {
      if (!DELETING.has(type)) return;
      deletions++;
      fresh.clear();
      encryptor?.revalidate();
    },
    deletions: () => deletions,
  };
}
