import type { Static, TObject } from "@sinclair/typebox";

/** An event does not fit its schema, has a type or version that this code does not know, or was altered. */
export class InvalidEvent extends Error {
  override readonly name = "InvalidEvent";
}

/** Metadata of every event: the caller and the request that caused it. */
export interface EventMeta {
  /** Version of the data's schema; older ones are upcast when read. */
  readonly schema: number;
  readonly request_id?: string;
  /** W3C Trace Context `traceparent` of the request that caused the event. */
  readonly traceparent?: string;
  /**
   * Caller that caused the event: name of an API token, `anonymous`, or `reachlog` for what the service does by itself.
   */
  readonly caller?: string;
  /** True if the event was read after the encryption key of its personal data was deleted. Never stored. */
  readonly erased?: true;
}

/** Converts data of one schema version to the next one. */
export type Upcast = (data: unknown) => unknown;

/** Definition of a type of event: its name, and the schema of its data. */
export interface EventSpec<T extends string = string, S extends TObject = TObject> {
  readonly type: T;
  readonly version: number;
  readonly data: S;
  /** `upcasts[n]` turns data of version n into version n + 1; there is one for every version below the current one. */
  readonly upcasts: Readonly<Record<number, Upcast>>;
}

export function defineEvent<T extends string, S extends TObject>(
  type: T,
  data: S,
  history: { version: number; upcasts: Readonly<Record<number, Upcast>> } = { version: 1, upcasts: {} },
): EventSpec<T, S> {
  return { type, data, ...history };
}

/** Type of the events that a definition describes. */
export type EventOf<Spec> =
  Spec extends EventSpec<infer T, infer S>
    ? { readonly id: string; readonly type: T; readonly data: Static<S>; readonly meta: EventMeta }
    : never;
