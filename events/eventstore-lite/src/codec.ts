import type { Codec, Folded, NewEvent, Recorded } from "./store.ts";

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

/** What is read of an event for a fold. */
export interface FoldedRow {
  readonly position: number;
  readonly version: number;
  /** Row of the type. */
  readonly type: number;
  /** Milliseconds since 1970, UTC. */
  readonly time: number;
  /** JSON, as `meta`. */
  readonly data: string;
  readonly meta: string;
}

export type Decode<E extends NewEvent> = (stored: StoredEvent) => Recorded<E>;

/** What is read from disk, and live what the codec does not recall. */
export function createDecode<E extends NewEvent>(codec: Codec<E>): Decode<E> {
  const formatTime = createTimeFormat();
  return ({ position, stream, version, type, id, timeMs, hash, data, meta }) =>
    codec.decode({
      id,
      type,
      data: JSON.parse(data),
      meta: JSON.parse(meta),
      position,
      stream,
      version,
      time: formatTime(timeMs),
      hash,
    });
}

/** What is read of an event that this process appended. Where it was not finished, `stored` lacks something. */
export type Recall<E extends NewEvent> = (event: NewEvent, stored: StoredEvent, isFinished: boolean) => Recorded<E>;

/** As {@link createDecode} does it, unless the codec has a shorter way. `storedAt` reads what the writer has finished. */
export function createRecall<E extends NewEvent>(
  codec: Codec<E>,
  decode: Decode<E>,
  storedAt: (position: number) => StoredEvent,
): Recall<E> {
  const formatTime = createTimeFormat();
  return (event, stored, isFinished) => {
    const { position, stream, version, timeMs, hash } = stored;
    const place = { position, stream, version, time: formatTime(timeMs), hash };
    return codec.recall?.(event as E, place) ?? decode(isFinished ? stored : storedAt(position));
  };
}

/** Turns the rows of a fold into events, in place: an object less for each of millions. */
export function createDecodeFolded<E extends NewEvent>(
  codec: Codec<E>,
  typeName: (type: number) => string,
): (rows: FoldedRow[]) => readonly Folded<E>[] {
  const formatTime = createTimeFormat();
  return (rows) => {
    for (const row of rows as unknown as { -readonly [Member in keyof FoldedRow]: unknown }[]) {
      row.type = typeName(row.type as number);
      row.time = formatTime(row.time as number);
      row.data = JSON.parse(row.data as string);
      row.data = codec.decodeData(row as Parameters<Codec<E>["decodeData"]>[0]);
    }
    return rows as unknown as Folded<E>[];
  };
}

/** For stores that hold {@link NewEvent}s as they are. */
export function identityCodec<E extends NewEvent>(): Codec<E> {
  return {
    encode: (event) => event,
    decode: (stored) => stored as Recorded<E>,
    decodeData: ({ data }) => data,
  };
}

/** Neighbours in the log often share the millisecond, and formatting one costs as much as parsing an event. */
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
