import type { NewEvent } from "eventstore-lite";
import { boxOf, openData, ownerOf, sealData, unite, type Data, type Opened } from "./sealed-data.ts";
import type { Personal, Sealer } from "./sealing.ts";

/** Closes and opens what is personal of events. */
export interface Boxes {
  /** Makes the keys that these events want. */
  prepare(events: readonly { readonly personal: Personal | undefined; readonly data: unknown }[]): void;
  /** The event as the log holds it. */
  close(personal: Personal | undefined, event: NewEvent): NewEvent;
  open(personal: Personal | undefined, stored: Stored): Opened;
  /** Everybody who comes to an event with which keys were deleted reads from then on without them. */
  heed(type: string): void;
}

/** What is needed of an event to open it. */
export interface Stored {
  /** Undefined in a fold. */
  readonly id: string | undefined;
  readonly type: string;
  readonly data: unknown;
}

/** Events held until they come back: a good part of a second of full load. */
const FRESH_MAX = 8_192;

/** With these events keys are deleted. */
const DELETING: ReadonlySet<string> = new Set(["PersonForgotten", "PersonalDataExpired"]);

export function createBoxes(sealer: () => Sealer | undefined): Boxes {
  /** Sealed here, and not yet read by who follows the log: opening these again would cost as much as sealing. */
  const fresh = new Map<string, Data>();

  return {
    prepare(events) {
      sealer()?.prepare(events.flatMap(({ personal, data }) => (personal ? [ownerOf(personal, data)] : [])));
    },
    close(personal, event) {
      const keys = personal === undefined ? undefined : sealer();
      const closed = personal === undefined || keys === undefined ? undefined : sealData(personal, event, keys);
      if (closed === undefined) return event;
      const { id, type, meta } = event;
      if (fresh.size >= FRESH_MAX) fresh.clear();
      if (closed.hidden !== undefined) fresh.set(id, closed.hidden);
      return { id, type, data: closed.data, meta };
    },
    open(personal, stored) {
      const box = personal === undefined ? undefined : boxOf(stored.data);
      if (personal === undefined || box === undefined) return { data: stored.data, erased: false };
      const known = stored.id === undefined ? undefined : fresh.get(stored.id);
      if (known === undefined) return openData(personal, stored, box, sealer());
      fresh.delete(stored.id ?? "");
      return { data: unite(stored.data, known), erased: false };
    },
    heed(type) {
      if (!DELETING.has(type)) return;
      fresh.clear();
      sealer()?.refresh();
    },
  };
}
