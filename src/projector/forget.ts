import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { rebuiltName } from "./rebuilt.ts";

/** No projection has this version, so that the next start folds the whole log. */
const NO_VERSION = 0;

/** Replaces every snapshot by one that nobody uses. */
export async function forgetSnapshots(store: EventStore<Event>): Promise<void> {
  for (const name of PROJECTION_NAMES) {
    for (const key of [name, rebuiltName(name)]) {
      await store.snapshots.save(key, { version: NO_VERSION, position: 0, state: "" });
    }
  }
}
