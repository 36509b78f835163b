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
} from "./encrypted-data.ts";
import type { EncryptionKey, Encryptor, Personal } from "./encryption.ts";

/** Closes and opens what is personal of events. */
export interface Ciphertexts {
  /** The events of one append as the log holds them. */
  close(events: readonly NewEvent[]): Awaitable<readonly Encoded[]>;
  open(stored: readonly Stored[]): Awaitable<readonly Opened[]>;
  /** Whether an event that was closed here would open as it was given: once, and not after a deletion. */
  isOpen(event: NewEvent): boolean;
  /** Called at an event that deleted keys: drops them from memory, so that reading goes on without them. */
  dropDeletedAt(type: string): void;
  /** How often such an event was read. */
  deletions(): number;
}

/** What is needed of an event to open it. */
export interface Stored {
  /** Undefined in a fold. */
  readonly id: string | undefined;
  readonly type: string;
  readonly data: unknown;
}

/** What is personal of the event at that index. */
interface Part {
  readonly at: number;
  readonly personal: Personal;
  readonly divided: Divided;
}

interface Closed extends Omit<Part, "divided"> {
  readonly ciphertext: string;
}

/** Events held until they come back: a good part of a second of full load. */
const FRESH_MAX = 16_384;

/** With these events keys are deleted. */
const DELETING: ReadonlySet<string> = new Set(["PersonForgotten", "PersonalDataExpired"]);

/** Without an encryptor nothing is closed, and every ciphertext reads as erased. */
export function createCiphertexts(
  personalOf: (type: string) => Personal | undefined,
  encryptor: Encryptor | undefined,
): Ciphertexts {
  /** Closed here, and not yet read by who follows the log. */
  const fresh = new Set<string>();
  let deletions = 0;

  const noteFresh = (id: string): void => {
    if (fresh.size >= FRESH_MAX) fresh.clear();
    fresh.add(id);
  };

  /** Who comes to a deletion while keys are asked for must not be given anything that was encrypted with those of before. */
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
