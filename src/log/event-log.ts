import type { AppendOptions } from "eventstore-lite";
import {
  makeEvent,
  type DataOf,
  type Event,
  type EventType,
  type LogStore,
  type Recorded,
} from "../../events/event-types-and-codec.ts";
import type { ChannelName, WebhookChannel } from "../../events/channel-and-lane-names.ts";
import type { EventMeta } from "../../events/define-event.ts";
import type { Clock, MakeId, Sleep } from "../platform/clock-ids-and-timers.ts";
import type { Logger } from "../platform/logger.ts";
import type { Projector } from "../projector/projector.ts";

/** The caller and the request that caused an event; stored as the event's `meta`. */
export type EventMetadata = Omit<EventMeta, "schema" | "erased">;

/** Metadata of all events that the service causes by itself. */
export const SERVICE_METADATA: EventMetadata = { caller: "reachlog" };

/** An event before it has metadata and, unless it brings its own, an id. */
export type NewEvent<T extends EventType = EventType> = {
  [K in T]: { readonly type: K; readonly data: DataOf<K>; readonly id?: string };
}[T];

/** Event log as the service writes it: new events get an id and metadata, and have the types of the event catalog. */
export type EventLog = ReturnType<typeof createEventLog>;

/** An open log, and the time, ids and randomness of the process that opened it. */
export interface LogContext {
  readonly eventLog: EventLog;
  /** The log's clock, by which decisions are made, in ms since 1970. */
  readonly clock: Clock;
  readonly logger: Logger;
  readonly makeId: MakeId;
  readonly sleep: Sleep;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  /** Name of this process as a holder of leases. */
  readonly holder: string;
  /**
   * Wall clock of the machine, default: the system's. It runs on while the machine sleeps, which the log's clock may
   * not do.
   */
  readonly wallClock?: Clock | undefined;
  /** A clock that only goes forward, in ms. */
  readonly elapsedMs?: (() => number) | undefined;
  /** Factor for all durations of leases, so that tests can run in real time; default 1. */
  readonly leaseScale?: number | undefined;
}

/** Context with a log and the states folded from it: what a decision reads, and where it appends. */
export interface StateContext extends LogContext {
  readonly projector: Projector;
  readonly announce: Announce;
}

/**
 * Function that tells the operator in a chat or messaging channel that something needs action. `key` identifies the
 * occasion, which is told only once. `failed`: a channel that must not be used because it is what failed.
 */
export type Announce = (text: string, key: string, failed?: ChannelName) => Promise<void>;

export const STREAMS = {
  account: "account",
  outreach: "outreach",
  requests: "requests",
  projections: "projections",
  access: "access",
  log: "log",
  webhook: (channel: WebhookChannel) => channel,
  delivery: (channel: string) => `delivery-${channel}`,
  link: (domain: string, shortCode: string) => `link-${domain}/${shortCode}`,
  answer: (scope: string) => `answer-${scope}`,
} as const;

export function createEventLog(store: LogStore, makeId: MakeId) {
  return {
    store,
    /** Appends events to one stream. Resolves once they are durable; throws the errors of the store. */
    append(stream: string, newEvents: readonly NewEvent[], metadata: EventMetadata, options?: AppendOptions) {
      const events = newEvents.map((newEvent): Event =>
        makeEvent(newEvent.type, newEvent.id ?? makeId(), newEvent.data, metadata),
      );
      const ids = events.map((event) => event.id);
      return store.append(stream, events, options).then(({ first, last, version, repeated }) => {
        return { first, last, version, repeated, ids };
      });
    },
  };
}

/**
 * Maximum gap, in events, between two wanted events that one read still covers. Starting another read costs as much as
 * reading that many unwanted events.
 */
const GAP_POSITIONS_MAX = 8;

/**
 * Reads the events at these positions, which are in ascending order; neighbours are read at once. Throws if one is
 * missing.
 */
export async function* eventsAt(store: LogStore, positions: readonly number[]): AsyncGenerator<Recorded, void, void> {
  for (let at = 0; at < positions.length;) {
    const from = positions[at] ?? 0;
    let end = at + 1;
    while (end < positions.length && (positions[end] ?? 0) - (positions[end - 1] ?? 0) <= GAP_POSITIONS_MAX) end++;
    for await (const event of store.read({ from, to: positions[end - 1] ?? from })) {
      if (event.position !== positions[at]) continue;
      at++;
      yield event;
    }
    if (at < end) throw missing(positions[at]);
  }
}

export async function eventAt(store: LogStore, position: number): Promise<Recorded> {
  for await (const event of store.read({ from: position, to: position })) return event;
  throw missing(position);
}

/** Finds the last event of a type, up to position `to`; undefined if there is none. */
export async function findLast<Type extends EventType>(store: LogStore, type: Type, to = Number.MAX_SAFE_INTEGER) {
  if (to < 1) return undefined;
  const [event] = await Array.fromAsync(store.read({ types: [type], to, backwards: true, limit: 1 }));
  return event as Recorded<Type> | undefined;
}

function missing(position: number | undefined): Error {
  return new Error(`the log has no event at position ${position}`);
}

/** Sorts positions into the order of the log, each once. */
export function inOrder(positions: Iterable<number>): readonly number[] {
  return [...new Set(positions)].sort((a, b) => a - b);
}
