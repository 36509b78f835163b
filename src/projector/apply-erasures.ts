import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../events/catalog.ts";
import { PERSONAL_PROJECTIONS, type ProjectionName } from "../../projections/all.ts";
import { createStates, type FoldedStates } from "../../projections/states.ts";
import type { Positions } from "./catch-up.ts";
import { foldRange } from "./fold.ts";

/** Makes everything that the event names unreadable. */
export type Erase = (event: Recorded<"PersonForgotten">) => Promise<void>;

/**
 * Applies erasures that come while the states are restored: deletes their keys, and so the older snapshots, before the log
 * is folded. `to`: the end of what will be folded; later erasures are applied on the way.
 */
export async function applyForgotten(
  store: EventStore<Event>,
  states: Map<ProjectionName, unknown>,
  positions: Positions,
  { to, erase }: { readonly to: number; readonly erase: Erase | undefined },
): Promise<void> {
  const names = PERSONAL_PROJECTIONS.filter((name) => positions.has(name));
  const from = Math.min(...names.map((name) => positions.get(name) ?? 0)) + 1;
  for await (const event of store.read({ types: ["PersonForgotten"], from, to })) {
    if (event.type !== "PersonForgotten") continue;
    await erase?.(event);
    for (const name of names) {
      if ((positions.get(name) ?? 0) >= event.position) continue;
      states.delete(name);
      positions.set(name, 0);
    }
  }
}

/**
 * Rebuilds the states that hold personal data from the log, where less is readable since a key was deleted. So they equal
 * what a rebuild gives, whatever they held before. Returns their names.
 */
export async function refold(
  store: EventStore<Event>,
  states: FoldedStates,
  to: number,
): Promise<readonly ProjectionName[]> {
  const rebuilt = createStates(PERSONAL_PROJECTIONS);
  if (to > 0) await foldRange(store, rebuilt, { from: 1, to });
  for (const name of PERSONAL_PROJECTIONS) states.replace(name, rebuilt.get(name));
  return PERSONAL_PROJECTIONS;
}
