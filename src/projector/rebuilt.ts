import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../events/catalog.ts";
import { projectionOf, type ProjectionName } from "../../projections/all.ts";
import { decodeState } from "../../projections/snapshot.ts";
import { loadFitting } from "./load-snapshot.ts";

/** Under this name a rebuilt state is kept until everybody has taken it over. */
export function rebuiltName(name: ProjectionName): string {
  return `rebuilt/${name}`;
}

/**
 * The rebuilt state that `event` tells of, or a later one that is as good; undefined when it is of another version of
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
  return { position: snapshot.position, state: decodeState(snapshot.state) };
}
