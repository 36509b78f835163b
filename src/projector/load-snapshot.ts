import { SnapshotAhead, type EventStore, type Snapshot } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";

/** The snapshot of that name; undefined when there is none, or when it tells of events that the log has lost. */
export async function loadFitting(store: EventStore<Event>, name: string): Promise<Snapshot | undefined> {
  try {
    return await store.snapshots.load(name);
  } catch (fault) {
    if (fault instanceof SnapshotAhead) return undefined;
    throw fault;
  }
}
