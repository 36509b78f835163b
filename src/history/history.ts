import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";

/** Where a history is read from, up to and including a position. */
export interface Reading {
  readonly store: EventStore<Event>;
  readonly to: number;
  /** Told which position is read. */
  readonly onProgress: (position: number) => void;
}

/** Positions at which dispatches were requested, by retries too -> the position of the source of each. */
export type Dispatches = ReadonlyMap<number, number>;

/** All that the log knows of one recipient, link, event or run. */
export interface History {
  /** Of its events, in the order of the log. */
  readonly positions: readonly number[];
  /** The dispatches that belong to it: what an outcome event says of others does not. */
  readonly dispatches: Dispatches;
}
