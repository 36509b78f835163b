import { EVENT_FIELDS } from "../append/messages.ts";
import type { DurableBatch } from "../append/settle.ts";
import { HASH_BYTES } from "../chain.ts";
import type { Recall, StoredEvent } from "../codec.ts";
import type { NewEvent, Recorded } from "../store.ts";

const HASH_HEX_CHARS = 2 * HASH_BYTES;

/** Enough for a good part of a second of full load: a subscriber which roughly keeps up never goes to disk. */
const RECENT_EVENTS_MAX = 16_384;
/** UTF-16 units of JSON: a few huge events must not hold more memory than many small ones. */
const RECENT_CHARS_MAX = 8 * 1024 * 1024;

export type Matches = (stream: string, type: string) => boolean;

/** The events of one transaction. */
export interface RecentBatch<E extends NewEvent> {
  readonly first: number;
  readonly last: number;
  readonly chars: number;
  /** Those from `from` on that match; each is made once a revision, however many subscribers take it. */
  take(from: number, matches: Matches): Recorded<E>[];
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

export function createRecent<E extends NewEvent>(recall: Recall<E>, revision: () => number): Recent<E> {
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
      const batch = createRecentBatch(durable, recall, revision);
      if (batch === undefined) return;
      if (batches.at(-1)?.last !== batch.first - 1) clear();
      batches.push(batch);
      chars += batch.chars;
      while (isTooMuch(batch.last)) dropFirst();
    },
  };
}

/** Undefined when the batch holds nothing new, or came without hashes because nobody followed. */
function createRecentBatch<E extends NewEvent>(
  durable: DurableBatch,
  recall: Recall<E>,
  revision: () => number,
): RecentBatch<E> | undefined {
  const first = durable.appends[0]?.appended.first;
  if (first === undefined || durable.hashes === "") return undefined;
  const last = durable.appends.at(-1)!.appended.last;
  const chars = durable.appends.reduce((sum, { append }) => sum + append.text.length, 0);
  let madeIn = revision();
  let recalled: Recorded<E>[] = [];
  return {
    first,
    last,
    chars,
    take(from, matches) {
      if (revision() !== madeIn) [madeIn, recalled] = [revision(), []];
      const events: Recorded<E>[] = [];
      for (const own of durable.appends) {
        const { append, appended } = own;
        for (let index = Math.max(0, from - appended.first); index < append.count; index += 1) {
          if (!matches(append.stream, append.fields[index * EVENT_FIELDS + 1]!)) continue;
          const at = appended.first + index - first;
          const isFinished = append.fields[index * EVENT_FIELDS + 4] === "";
          events.push(
            (recalled[at] ??= recall(append.events[index]!, storedEvent(durable, own, index, at), isFinished)),
          );
        }
      }
      return events;
    },
  };
}

/** The event at `index` of an append, which is the one at `at` of its batch, as a reader would find it on disk. */
function storedEvent(
  { timeMs, hashes }: DurableBatch,
  { append, appended }: DurableBatch["appends"][number],
  index: number,
  at: number,
): StoredEvent {
  const { stream, fields, count } = append;
  const field = index * EVENT_FIELDS;
  return {
    position: appended.first + index,
    stream,
    version: appended.version - count + 1 + index,
    id: fields[field]!,
    type: fields[field + 1]!,
    data: fields[field + 2]!,
    meta: fields[field + 3]!,
    timeMs,
    hash: hashes.slice(at * HASH_HEX_CHARS, (at + 1) * HASH_HEX_CHARS),
  };
}
