import type { AppendOptions } from "eventstore-lite";
import {
  makeEvent,
  type DataOf,
  type Event,
  type EventType,
  type LogStore,
  type Recorded,
} from "../../events/catalog.ts";
import type { WebhookChannel } from "../../events/channel.ts";
import type { EventMeta } from "../../events/event.ts";
import type { Clock, MakeId, Sleep } from "../platform/clock.ts";
import type { Logger } from "../platform/logger.ts";
import type { Projector } from "../projector/projector.ts";

/** The caller and the request that caused an event; becomes its `meta`. */
export type EventMetadata = Omit<EventMeta, "schema" | "erased">;

/** Metadata of all events that the service causes by itself. */
export const SERVICE_METADATA: EventMetadata = { caller: "reachlog" };

/** An event before it has an id and metadata. */
export type NewEvent<T extends EventType = EventType> = { [K in T]: { readonly type: K; readonly data: DataOf<K> } }[T];

/** The log as the service writes it: new events in, events of the catalog on disk. */
export type EventLog = ReturnType<typeof createEventLog>;

/** Dependencies of many parts of the service; each part picks those that it needs. */
export interface PartDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly makeId: MakeId;
  readonly sleep: Sleep;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  /** Announces to the operator what calls for action. `key` names the occasion; each is announced once. */
  readonly announce: (text: string, key: string) => Promise<void>;
}

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
    /** Appends events to one stream. Resolves once they are durable; errors are those of the store. */
    append(stream: string, newEvents: readonly NewEvent[], metadata: EventMetadata, options?: AppendOptions) {
      const events = newEvents.map((newEvent): Event => makeEvent(newEvent.type, makeId(), newEvent.data, metadata));
      const ids = events.map((event) => event.id);
      return store.append(stream, events, options).then(({ first, last, version, repeated }) => {
        return { first, last, version, repeated, ids };
      });
    },
  };
}

/** Maximum gap between events that are read at once: a separate read costs as much as this many unwanted events. */
const GAP_POSITIONS_MAX = 8;

/**
 * The events at these positions, which are in ascending order; neighbours are read at once. Throws if one is missing.
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

/** The last event of a type, up to position `to`; undefined if there is none. */
export async function findLast<Type extends EventType>(store: LogStore, type: Type, to = Number.MAX_SAFE_INTEGER) {
  if (to < 1) return undefined;
  const [event] = await Array.fromAsync(store.read({ types: [type], to, backwards: true, limit: 1 }));
  return event as Recorded<Type> | undefined;
}

function missing(position: number | undefined): Error {
  return new Error(`the log has no event at position ${position}`);
}

/** The given positions in the order of the log, each once. */
export function inOrder(positions: Iterable<number>): readonly number[] {
  return [...new Set(positions)].sort((a, b) => a - b);
}
