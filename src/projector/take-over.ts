import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../events/catalog.ts";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { createStates, type FoldedStates } from "../../projections/states.ts";
import { differences, membersOf } from "./differences.ts";
import { foldRange } from "./fold.ts";
import { errorFields, type Logger } from "../platform/logger.ts";
import { loadRebuilt } from "./snapshots.ts";

/**
 * Replaces a live state by the rebuilt one that `event` reports; the states stand right before that event.
 * Whatever is wrong with the rebuilt one is logged and leaves the live one: the service serves on.
 */
export async function takeOver(
  store: EventStore<Event>,
  states: FoldedStates,
  event: Recorded<"ProjectionRebuilt">,
  logger: Logger | undefined,
): Promise<void> {
  const fields = { projection: event.data.projection, position: event.position };
  try {
    const found = await replace(store, states, event);
    if (found === undefined) {
      logger?.info("a rebuilt projection was not taken over: it is of another version, or a later one follows", fields);
    } else if (found.length === 0) {
      logger?.info("a rebuilt projection was taken over, without a difference", fields);
    } else {
      const members = membersOf(found).join(", ");
      logger?.warn("a projection differed from the log and was replaced by the rebuilt one", { ...fields, members });
    }
  } catch (fault) {
    logger?.error("a rebuilt projection could not be taken over", { ...fields, ...errorFields(fault) });
  }
}

/** Where the two differed; undefined when nothing was replaced. */
async function replace(
  store: EventStore<Event>,
  states: FoldedStates,
  event: Recorded<"ProjectionRebuilt">,
): Promise<readonly string[] | undefined> {
  const name = PROJECTION_NAMES.find((known) => known === event.data.projection);
  const rebuilt = name === undefined ? undefined : await loadRebuilt(store, name, event);
  if (name === undefined || rebuilt === undefined) return undefined;
  const shadow = createStates([name], new Map([[name, rebuilt.state]]));
  await foldRange(store, shadow, { from: rebuilt.position + 1, to: event.position - 1 });
  const found = await differences(states.get(name), shadow.get(name));
  states.replace(name, shadow.get(name));
  return found;
}
