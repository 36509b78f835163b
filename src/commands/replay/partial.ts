import type { EventStore } from "eventstore-lite";
import type { Event } from "../../../events/catalog.ts";
import { projectionOf, type ProjectionName } from "../../../projections/all.ts";
import { loadFitting } from "../../projector/snapshots.ts";
import { packState, unpackState } from "../../projector/stored-states.ts";

/** How far a rebuild of one projection came, kept so that an interrupted one is not in vain. */
export interface Partial {
  readonly position: number;
  /** Events folded so far. */
  readonly events: number;
  /** What the comparison found, when it lies behind already. */
  readonly differences: readonly string[] | null;
  readonly state: unknown;
}

/** What is stored; the hash of the event at its position shows that it belongs to this log. */
interface Kept extends Omit<Partial, "position"> {
  readonly hash: string;
}

/** The kept work; undefined when there is none, or when it fits neither this log nor this version of the projection. */
export async function loadPartial(store: EventStore<Event>, name: ProjectionName): Promise<Partial | undefined> {
  const snapshot = await loadFitting(store, partialName(name));
  if (snapshot?.version !== projectionOf(name).version) return undefined;
  const { hash, ...kept } = (await unpackState(snapshot.state)) as Kept;
  const { position } = snapshot;
  return hash === (await store.hashAt(position)) ? { ...kept, position } : undefined;
}

/** Keeps the work; without effect before the first event. */
export async function savePartial(store: EventStore<Event>, name: ProjectionName, partial: Partial): Promise<void> {
  const { position, ...kept } = partial;
  const hash = position === 0 ? undefined : await store.hashAt(position);
  if (hash === undefined) return;
  const state = await packState({ ...kept, hash } satisfies Kept);
  await store.snapshots.save(partialName(name), { version: projectionOf(name).version, position, state });
}

/** Without effect where nothing is kept. */
export async function dropPartial(store: EventStore<Event>, name: ProjectionName): Promise<void> {
  await store.snapshots.remove([partialName(name)]);
}

function partialName(name: ProjectionName): string {
  return `rebuild/${name}`;
}
