import { EVENT_FIELDS } from "../append/writer-messages.ts";
import type { DurableBatch } from "../append/settle-batch.ts";
import { HASH_BYTES } from "../event-hash-chain.ts";
import { andThen, type Awaitable } from "../value-or-promise.ts";
import type { Decode, Recall, StoredEvent } from "../codec.ts";
import type { NewEvent, Recorded } from "../event-store-interface.ts";

const HASH_HEX_CHARS = 2 * HASH_BYTES;

/**
 * Maximum number of events kept in memory: a good part of a second of full load. A subscriber that roughly keeps up
 * never reads from disk.
 */
const RECENT_EVENTS_MAX = 16_384;
/**
 * Maximum number of UTF-16 units of JSON kept in memory, because a few huge events must not take more memory than many
 * small ones.
 */
const RECENT_CHARS_MAX = 8 * 1024 * 1024;

export type Matches = (stream: string, type: string) => boolean;

/** Events of one transaction, kept in memory for subscribers. */
export interface RecentBatch<E extends NewEvent> {
  readonly first: number;
  readonly last: number;
  readonly chars: number;
  /**
   * Returns the matching events from position `from` on. Each event is made once for each revision of the codec,
   * however many subscribers take it.
   */
  take(from: number, matches: Matches): Awaitable<readonly Recorded<E>[]>;
}

/** The newest events that this process appended, in memory. Events of other processes may lie between two batches. */
export interface Recent<E extends NewEvent> {
  holding(position: number): RecentBatch<E> | undefined;
  /** Returns the first position after `position` whose event is in memory; Infinity if there is none. */
  nextHeld(position: number): number;
  push(batch: DurableBatch): void;
  /**
   * Drops from memory the events before `position`, which all subscribers have read: kept longer, they would only
   * burden the garbage collector.
   */
  forget(position: number): void;
  clear(): void;
}

/**
 * Functions that give subscribers their events: from the appended events in memory, from stored rows, or by reading the
 * log.
 */
export interface Decoding<E extends NewEvent> {
  readonly recall: Recall<E>;
  readonly decode: Decode<E>;
  /**
   * Reads events from the log. Needed for events that the writer's transform completed, because this process does not
   * hold their final form in memory.
   */
  readonly read: (range: { readonly from: number; readonly to: number }) => AsyncIterable<readonly Recorded<E>[]>;
  /** Returns a number that changes once these functions give different results. */
  readonly revision: () => number;
}

export function createRecent<E extends NewEvent>(decoding: Decoding<E>): Recent<E> {
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
    nextHeld: (position) => batches.find(({ first }) => first > position)?.first ?? Infinity,
    forget(position) {
      while (batches.length > 0 && batches[0]!.last < position) dropFirst();
    },
    push(durable) {
      const batch = createRecentBatch(durable, decoding);
      if (batch === undefined) return;
      batches.push(batch);
      chars += batch.chars;
      while (isTooMuch(batch.last)) dropFirst();
    },
  };
}

/**
 * Creates the batch that subscribers read from memory. Undefined if it holds nothing new, or came without hashes
 * because there was no subscriber.
 */
function createRecentBatch<E extends NewEvent>(
  durable: DurableBatch,
  { recall, decode, read, revision }: Decoding<E>,
): RecentBatch<E> | undefined {
  const first = durable.appends[0]?.appended.first;
  if (first === undefined || durable.hashes === "") return undefined;
  const last = durable.appends.at(-1)!.appended.last;
  const chars = durable.appends.reduce((sum, { append }) => sum + append.chars, 0);
  const readAll = async (missing: readonly StoredEvent[]): Promise<readonly Recorded<E>[]> => {
    const batches = await Array.fromAsync(read({ from: missing[0]!.position, to: missing.at(-1)!.position }));
    return batches.flat();
  };
  let madeIn = revision();
  /** Events of the batch that were made for subscribers so far, by their index in the batch. */
  let made: Recorded<E>[] = [];
  return {
    first,
    last,
    chars,
    take(from, matches) {
      if (revision() !== madeIn) [madeIn, made] = [revision(), []];
      const known = made;
      const wanted: number[] = [];
      const missing: StoredEvent[] = [];
      let isFinished = true;
      for (const own of durable.appends) {
        const { append, appended } = own;
        for (let index = Math.max(0, from - appended.first); index < append.count; index += 1) {
          const field = index * EVENT_FIELDS;
          if (!matches(append.stream, append.fields[field + 1]!)) continue;
          const at = appended.first + index - first;
          wanted.push(at);
          if (known[at] !== undefined) continue;
          const stored = storedEvent(durable, own, index, at);
          const recalled = recall(append.events[index]!, stored);
          if (recalled !== undefined) {
            known[at] = recalled;
            continue;
          }
          missing.push(stored);
          if (append.fields[field + 4] !== "") isFinished = false;
        }
      }
      if (missing.length === 0) return wanted.map((at) => known[at]!);
      return andThen(isFinished ? decode(missing) : readAll(missing), (events) => {
        for (const event of events) known[event.position - first] ??= event;
        return wanted.map((at) => known[at]!);
      });
    },
  };
}

/**
 * Returns an appended event as a reader would find it in the log. `index`: its place in its append; `at`: its place in
 * the batch.
 */
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
