import { SnapshotAhead, type EventStore, type Snapshot } from "eventstore-lite";
import type { Event, Recorded } from "../../events/catalog.ts";
import { projectionOf, type ProjectionName, PROJECTION_NAMES } from "../../projections/all.ts";
import { removePast } from "./past.ts";
import { unpackState } from "./stored-states.ts";

/** The snapshot of that name; undefined when there is none, or when it includes events that the log has lost. */
export async function loadFitting(store: EventStore<Event>, name: string): Promise<Snapshot | undefined> {
  try {
    return await store.snapshots.load(name);
  } catch (fault) {
    if (fault instanceof SnapshotAhead) return undefined;
    throw fault;
  }
}

/** Under this name a rebuilt state is kept until all instances have loaded it. */
export function rebuiltName(name: ProjectionName): string {
  return `rebuilt/${name}`;
}

/**
 * The rebuilt state that `event` reports, or a later one that is as good; undefined when it is of another version of
 * the projection, or when a later rebuild has replaced it: that one has an event of its own.
 */
export async function loadRebuilt(
  store: EventStore<Event>,
  name: ProjectionName,
  event: Recorded<"ProjectionRebuilt">,
): Promise<{ readonly position: number; readonly state: unknown } | undefined> {
  const { version } = projectionOf(name);
  const snapshot = await loadFitting(store, rebuiltName(name));
  if (snapshot?.version !== version || snapshot.position >= event.position) return undefined;
  return { position: snapshot.position, state: await unpackState(snapshot.state) };
}

/** Removes every snapshot of a projection, so that the next start folds the whole log. */
export async function forgetSnapshots(store: EventStore<Event>): Promise<void> {
  await removePast(store);
  await store.snapshots.remove(PROJECTION_NAMES.flatMap((name) => [name, rebuiltName(name)]));
}
