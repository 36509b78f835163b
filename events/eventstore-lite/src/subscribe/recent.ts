import { HASH_BYTES } from "../chain.ts";
import type { Decode, StoredEvent } from "../recorded.ts";
import type { NewEvent, Recorded } from "../store.ts";
import { EVENT_FIELDS } from "../writer/messages.ts";
import type { DurableBatch } from "../writer/settle.ts";

const HASH_HEX_CHARS = 2 * HASH_BYTES;

/** Enough for a good part of a second of full load: a subscriber which roughly keeps up never goes to disk. */
const RECENT_EVENTS_MAX = 16_384;
/** UTF-16 units of JSON: a few huge events must not hold more memory than many small ones. */
const RECENT_CHARS_MAX = 8 * 1024 * 1024;

/** The events of one transaction. */
export interface RecentBatch<E extends NewEvent> {
  readonly first: number;
  readonly last: number;
  readonly chars: number;
  stored(position: number): StoredEvent;
  /** Decoded once, however many subscribers take it. */
  decoded(position: number): Recorded<E>;
}

/** The end of the log in memory: consecutive positions, up to the last event that this process appended. */
export interface Recent<E extends NewEvent> {
  holding(position: number): RecentBatch<E> | undefined;
  /** Starts anew when the batch does not follow on the last one: another process appended in between. */
  push(batch: DurableBatch): void;
  /** Everybody is past what lies before `position`: kept any longer, it would only be in the garbage collector's way. */
  forget(position: number): void;
  clear(): void;
}

export function createRecent<E extends NewEvent>(decode: Decode<E>): Recent<E> {
  let batches: RecentBatch<E>[] = [];
  let chars = 0;

  function clear(): void {
    batches = [];
    chars = 0;
  }

  const dropFirst = (): void => {
    chars -= batches.shift()?.chars ?? 0;
  };

  const isTooMuch = (last: number): boolean =>
    batches.length > 1 && (last - batches[0]!.first >= RECENT_EVENTS_MAX || chars > RECENT_CHARS_MAX);

  return {
    clear,
    holding: (position) => batches.findLast(({ first, last }) => first <= position && position <= last),
    forget(position) {
      while (batches.length > 0 && batches[0]!.last < position) dropFirst();
    },
    push(durable) {
      const batch = createRecentBatch(durable, decode);
      if (batch === undefined) return;
      if (batches.at(-1)?.last !== batch.first - 1) clear();
      batches.push(batch);
      chars += batch.chars;
      while (isTooMuch(batch.last)) dropFirst();
    },
  };
}

/** Undefined when the batch holds nothing new, or came without hashes because nobody followed. */
function createRecentBatch<E extends NewEvent>(durable: DurableBatch, decode: Decode<E>): RecentBatch<E> | undefined {
  const first = durable.appends[0]?.appended.first;
  if (first === undefined || durable.hashes === "") return undefined;
  const last = durable.appends.at(-1)!.appended.last;
  const chars = durable.appends.reduce((sum, { append }) => sum + append.text.length, 0);
  let events: StoredEvent[] | undefined;
  const decoded: Recorded<E>[] = [];

  const stored = (position: number): StoredEvent => (events ??= storedEvents(durable))[position - first]!;
  return {
    first,
    last,
    chars,
    stored,
    decoded: (position) => (decoded[position - first] ??= decode(stored(position))),
  };
}

/** The events of a batch as a reader would find them on disk. */
function storedEvents({ timeMs, hashes, appends }: DurableBatch): StoredEvent[] {
  const events: StoredEvent[] = [];
  for (const { append, appended } of appends) {
    const { stream, fields, count } = append;
    for (let index = 0; index < count; index += 1) {
      const at = index * EVENT_FIELDS;
      const hashAt = events.length * HASH_HEX_CHARS;
      events.push({
        position: appended.first + index,
        stream,
        version: appended.version - count + 1 + index,
        id: fields[at]!,
        type: fields[at + 1]!,
        data: fields[at + 2]!,
        meta: fields[at + 3]!,
        timeMs,
        hash: hashes.slice(hashAt, hashAt + HASH_HEX_CHARS),
      });
    }
  }
  return events;
}
