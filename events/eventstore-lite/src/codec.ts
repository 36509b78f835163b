import { andThen, type Awaitable } from "./awaitable.ts";
import type { Codec, Folded, NewEvent, Recorded, StoredData } from "./store.ts";

/** An event as the database holds it. */
export interface StoredEvent {
  readonly position: number;
  readonly stream: string;
  readonly version: number;
  readonly type: string;
  readonly id: string;
  /** Milliseconds since 1970, UTC. */
  readonly timeMs: number;
  readonly hash: string;
  /** JSON, as `meta`. */
  readonly data: string;
  readonly meta: string;
}

/** The fields of an event that a fold reads. */
export interface FoldedRow<Type = number> {
  readonly position: number;
  readonly version: number;
  /** Row of the type, or its name. */
  readonly type: Type;
  /** Milliseconds since 1970, UTC. */
  readonly time: number;
  /** JSON, as `meta`. */
  readonly data: string;
  readonly meta: string;
}

/** Decodes events in order; the result has as many. */
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

/** The functions of a codec that subscriptions use. */
export interface Decoding<E extends NewEvent> {
  readonly recall: Recall<E>;
  readonly decode: Decode<E>;
  /** Changes once `decode` gives different results. */
  revision(): number;
}

export function createDecoding<E extends NewEvent>(codec: Codec<E>): Decoding<E> {
  return { recall: createRecall(codec), decode: createDecode(codec), revision: () => codec.revision?.() ?? 0 };
}

/** Turns the rows of a fold into events in place, which saves millions of objects. */
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

/** The codec of stores that hold {@link NewEvent}s unchanged. */
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
