import type { Decode, StoredEvent } from "../recorded.ts";
import type { NewEvent, Recorded } from "../store.ts";

/** Enough for a second of full load, so that a subscriber which keeps up roughly never goes to disk. */
const RECENT_EVENTS_MAX = 16_384;
/** UTF-16 units of JSON: a few huge events must not hold more memory than many small ones. */
const RECENT_CHARS_MAX = 8 * 1024 * 1024;

export interface RecentEvent<E extends NewEvent> {
  readonly stored: StoredEvent;
  /** Decoded once, however many subscribers take it. */
  decoded(): Recorded<E>;
}

/** The end of the log in memory: consecutive positions, up to the last event that this process appended. */
export interface Recent<E extends NewEvent> {
  at(position: number): RecentEvent<E> | undefined;
  /** Starts anew when `stored` does not follow on the last one: another process appended in between. */
  push(stored: StoredEvent): void;
  clear(): void;
}

export function createRecent<E extends NewEvent>(decode: Decode<E>): Recent<E> {
  const events = new Map<number, RecentEvent<E>>();
  let first = 1;
  let next = 1;
  let chars = 0;

  function clear(): void {
    events.clear();
    chars = 0;
  }

  function dropFirst(): void {
    chars -= charsOf(events.get(first)?.stored);
    events.delete(first);
    first += 1;
  }

  return {
    at: (position) => events.get(position),
    clear,
    push(stored) {
      if (stored.position !== next) clear();
      if (events.size === 0) first = stored.position;
      next = stored.position + 1;
      chars += charsOf(stored);
      events.set(stored.position, createRecentEvent(stored, decode));
      while (events.size > RECENT_EVENTS_MAX || chars > RECENT_CHARS_MAX) dropFirst();
    },
  };
}

function createRecentEvent<E extends NewEvent>(stored: StoredEvent, decode: Decode<E>): RecentEvent<E> {
  let event: Recorded<E> | undefined;
  return {
    stored,
    decoded: () => (event ??= decode(stored)),
  };
}

function charsOf(stored: StoredEvent | undefined): number {
  return stored ? stored.data.length + stored.meta.length : 0;
}
