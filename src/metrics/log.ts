import type { Registry } from "prom-client";
import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { Projector } from "../projector/projector.ts";
import { lookUp } from "./figures.ts";

export interface LogSources {
  readonly store: EventStore<Event>;
  readonly projector: Pick<Projector, "position">;
  /** Streams of events that are open. */
  readonly load: { readonly streams: number };
}

/** How far the log is, and who follows it. */
export function observeLog(registry: Registry, { store, projector, load }: LogSources): void {
  const head = async (): Promise<number> => (await store.head()).position;
  lookUp(registry, "reachlog_log_position", "Position of the last event.", head);
  lookUp(registry, "reachlog_projection_lag_events", "Events that the projections have not folded.", async () =>
    Math.max(0, (await head()) - projector.position),
  );
  lookUp(registry, "reachlog_event_streams", "Streams of events and exports that are open.", () => load.streams);
}
