import type { Static, TObject } from "@sinclair/typebox";

/** An event does not fit its schema, has a type or version that this code does not know, or was altered. */
export class InvalidEvent extends Error {
  override readonly name = "InvalidEvent";
}

/** The metadata of every event: who caused it, and in which request. */
export interface EventMeta {
  /** Version of the data's schema; older ones are upcast when read. */
  readonly schema: number;
  readonly request_id?: string;
  /** W3C Trace Context `traceparent` of the request that caused the event. */
  readonly traceparent?: string;
  /** Name of the API token, `anonymous`, or `reachlog` for what the service does by itself. */
  readonly caller?: string;
  /** Never stored; set on an event that was read after the key of its personal data was deleted. */
  readonly erased?: true;
}

/** Converts data of one schema version to the next one. */
export type Upcast = (data: unknown) => unknown;

/** The definition of a type of event. */
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

/** The event a spec describes. */
export type EventOf<Spec> =
  Spec extends EventSpec<infer T, infer S>
    ? { readonly id: string; readonly type: T; readonly data: Static<S>; readonly meta: EventMeta }
    : never;
