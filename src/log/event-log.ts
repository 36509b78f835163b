import type { AppendOptions, Appended } from "eventstore-lite";
import { makeEvent, type DataOf, type Event, type EventType, type LogStore } from "../../events/catalog.ts";
import type { EventMeta } from "../../events/event.ts";
import type { MakeId } from "../platform/clock.ts";

/** Who and what caused an event; becomes its `meta`. */
export type EventMetadata = Omit<EventMeta, "schema" | "erased">;

/** Everything the service does by itself. */
export const SERVICE_METADATA: EventMetadata = { caller: "reachlog" };

/** What happened, before it has an id and a cause. */
export type NewEvent<T extends EventType = EventType> = { [K in T]: { readonly type: K; readonly data: DataOf<K> } }[T];

/** The log as the service writes it: new events in, events of the catalog on disk. */
export interface EventLog {
  readonly store: LogStore;
  /** Appends events to one stream. Resolves once they are durable; errors are those of the store. */
  append(
    stream: string,
    newEvents: readonly NewEvent[],
    metadata: EventMetadata,
    options?: AppendOptions,
  ): Promise<Appended & { readonly ids: readonly string[] }>;
}

export const STREAMS = {
  account: "account",
  outreach: "outreach",
  requests: "requests",
  projections: "projections",
  access: "access",
  log: "log",
  webhook: "webhook",
  delivery: (channel: string) => `delivery-${channel}`,
  link: (domain: string, shortCode: string) => `link-${domain}/${shortCode}`,
  answer: (scope: string) => `answer-${scope}`,
} as const;

export function createEventLog(store: LogStore, makeId: MakeId): EventLog {
  return {
    store,
    append(stream, newEvents, metadata, options) {
      const events = newEvents.map((newEvent): Event => makeEvent(newEvent.type, makeId(), newEvent.data, metadata));
      const ids = events.map((event) => event.id);
      return store.append(stream, events, options).then(({ first, last, version, repeated }) => {
        return { first, last, version, repeated, ids };
      });
    },
  };
}
