import { SnapshotAhead, type EventStore, type Snapshot } from "eventstore-lite";
import type { Event } from "../../../events/catalog.ts";
import { projectionOf, type ProjectionName } from "../../../projections/all.ts";
import { differences } from "../../projector/differences.ts";
import { unpackState } from "../../projector/stored-states.ts";

/** Sets a projection that is being rebuilt against its stored snapshot, at the snapshot's own position. */
export interface Comparison {
  /** Where it compares; undefined when there is nothing to compare with. */
  readonly at: number | undefined;
  compare(state: unknown): Promise<void>;
  /** Null: it did not come to it. */
  found(): readonly string[] | null;
}

/** `known`: what an interrupted rebuild found. */
export async function createComparison(
  store: EventStore<Event>,
  name: ProjectionName,
  known: readonly string[] | null,
): Promise<Comparison> {
  let found = known;
  let stored: Snapshot | undefined;
  try {
    const snapshot = await store.snapshots.load(name);
    if (snapshot?.version === projectionOf(name).version) stored = snapshot;
  } catch (fault) {
    if (!(fault instanceof SnapshotAhead)) throw fault;
    found = [fault.message];
  }
  return {
    at: stored?.position,
    async compare(state) {
      if (stored !== undefined) found = await differences(await unpackState(stored.state), state);
    },
    found: () => found,
  };
}
