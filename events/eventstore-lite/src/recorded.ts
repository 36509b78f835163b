import type { Codec, NewEvent, Recorded } from "./store.ts";

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

export type Decode<E extends NewEvent> = (stored: StoredEvent) => Recorded<E>;

/** What is written live and what is read from disk both pass through here, so they cannot differ. */
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

/** For stores that hold {@link NewEvent}s as they are. */
export function identityCodec<E extends NewEvent>(): Codec<E> {
  return { encode: (event) => event, decode: (stored) => stored as Recorded<E> };
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
