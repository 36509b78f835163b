import { andThen, type Awaitable } from "./value-or-promise.ts";
import type { Folded, NewEvent, Place, Recorded } from "./event-store-interface.ts";

/** An event as a codec passes it on to be written. */
export interface Encoded extends NewEvent {
  /**
   * Work that the codec leaves to the writer thread, such as a text to encrypt, as JSON or other text without line
   * breaks. Never empty.
   */
  readonly transformInput?: string | undefined;
}

/**
 * Returns the JSON to store for an event, from its data's JSON and the `input` that its codec left. Must return what
 * `JSON.stringify` makes of the data, because an import checks that. An error refuses the append with {@link
 * InvalidAppend}.
 */
export type WriterTransform = (data: string, input: string) => string;

/** An event that a codec decodes for a fold. */
export interface StoredData {
  readonly position: number;
  readonly type: string;
  readonly data: unknown;
  /** Metadata of the event as JSON text; not parsed, because most codecs only glance at it. */
  readonly meta: string;
}

/**
 * Converts and checks events on their way in and out, so that the store knows nothing of the domain. Takes many at a
 * time, so that keys, for example, are fetched once for all of them. Results keep the order and number of the events.
 */
export interface Codec<E extends NewEvent> {
  /**
   * Encodes all events of one append; returns a promise only if it has to wait. Throws on an event that breaks its
   * schema. `isChecked`: the caller has checked the events already.
   */
  encode(events: readonly E[], isChecked?: boolean): Awaitable<readonly Encoded[]>;
  /**
   * Upcasts and checks stored events, in order. Throws on an unknown type or a broken schema; the store then passes the
   * events one by one, so that those before the fault are read.
   */
  decode(stored: readonly Recorded<NewEvent>[]): Awaitable<readonly Recorded<E>[]>;
  /**
   * Returns the event that a subscriber gets, made from the appended event, which is cheaper than parsing its stored
   * JSON. Undefined if the stored event must be decoded. No code may change such an event after the append.
   */
  recall?(event: E, place: Place): Recorded<E> | undefined;
  /**
   * Returns a number that changes once decoding gives different results. The events kept in memory for subscribers are
   * then decoded again.
   */
  revision?(): number;
  /** Decodes only the data of stored events, under the rules of {@link Codec.decode}. */
  decodeData(stored: readonly StoredData[]): Awaitable<readonly unknown[]>;
}

/** An event as the database holds it. */
export interface StoredEvent {
  readonly position: number;
  readonly stream: string;
  readonly version: number;
  readonly type: string;
  readonly id: string;
  /** Time at which the event was recorded, in ms since 1970. */
  readonly timeMs: number;
  readonly hash: string;
  /** Data of the event as JSON text. */
  readonly data: string;
  /** Metadata of the event as JSON text. */
  readonly meta: string;
}

/** The fields of an event that a fold reads. */
export interface FoldedRow<Type = number> {
  readonly position: number;
  readonly version: number;
  /** Row number of the event's type in the table of types, or the type's name. */
  readonly type: Type;
  /** Time at which the event was recorded, in ms since 1970. */
  readonly time: number;
  /** Data of the event as JSON text. */
  readonly data: string;
  /** Metadata of the event as JSON text. */
  readonly meta: string;
}

/** Decodes stored events; the result has as many events, in the same order. */
export type Decode<E extends NewEvent> = (stored: readonly StoredEvent[]) => Awaitable<readonly Recorded<E>[]>;

/** Creates the decoder for events read from the log. */
export function createDecode<E extends NewEvent>(codec: Codec<E>): Decode<E> {
  const formatTime = createTimeFormat();
  return (chunk) =>
    codec.decode(
      chunk.map(({ position, stream, version, type, id, timeMs, hash, data, meta }) => ({
        id,
        type,
        data: JSON.parse(data) as unknown,
        meta: JSON.parse(meta) as unknown,
        position,
        stream,
        version,
        time: formatTime(timeMs),
        hash,
      })),
    );
}

/**
 * Makes a subscriber's event from one that this process appended, without decoding it; undefined if it must be decoded.
 */
export type Recall<E extends NewEvent> = (event: NewEvent, stored: StoredEvent) => Recorded<E> | undefined;

function createRecall<E extends NewEvent>(codec: Codec<E>): Recall<E> {
  const formatTime = createTimeFormat();
  return (event, { position, stream, version, timeMs, hash }) =>
    codec.recall?.(event as E, { position, stream, version, time: formatTime(timeMs), hash });
}

/** Functions of a codec that subscriptions use. */
export interface Decoding<E extends NewEvent> {
  readonly recall: Recall<E>;
  readonly decode: Decode<E>;
  /** Returns a number that changes once `decode` gives different results. */
  revision(): number;
}

export function createDecoding<E extends NewEvent>(codec: Codec<E>): Decoding<E> {
  return { recall: createRecall(codec), decode: createDecode(codec), revision: () => codec.revision?.() ?? 0 };
}

/**
 * Creates the decoder for a fold. It turns the rows it gets into events in place, which saves the allocation of
 * millions of objects.
 */
export function createDecodeFolded<E extends NewEvent, Type>(
  codec: Codec<E>,
  typeName: (type: Type) => string,
): (rows: FoldedRow<Type>[]) => Awaitable<readonly Folded<E>[]> {
  const formatTime = createTimeFormat();
  return (rows) => {
    const events = rows as unknown as { -readonly [Member in keyof FoldedRow]: unknown }[];
    for (const event of events) {
      event.type = typeName(event.type as Type);
      event.time = formatTime(event.time as number);
      event.data = JSON.parse(event.data as string);
    }
    return andThen(codec.decodeData(events as readonly StoredData[]), (decoded) => {
      for (const [index, event] of events.entries()) event.data = decoded[index];
      return events as unknown as Folded<E>[];
    });
  };
}

/** Creates the codec of a store that holds {@link NewEvent}s unchanged. */
export function identityCodec<E extends NewEvent>(): Codec<E> {
  return {
    encode: (events) => events,
    decode: (stored) => stored as readonly Recorded<E>[],
    decodeData: (stored) => stored.map(({ data }) => data),
  };
}

/**
 * Formats times, and reuses the last text. Neighbours in the log often share the millisecond, and formatting one costs
 * as much as parsing an event.
 */
function createTimeFormat(): (timeMs: number) => string {
  let lastMs = 0;
  let lastText = new Date(0).toISOString();
  return (timeMs) => {
    if (timeMs === lastMs) return lastText;
    lastMs = timeMs;
    lastText = new Date(timeMs).toISOString();
    return lastText;
  };
}
