import type { LogStore } from "../../../events/event-types-and-codec.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { clicksPart } from "../../bench/generate-clicks-and-dispatch-outcomes.ts";
import type { Emit, Part } from "../../bench/write-mixed-log.ts";
import { outreachPart } from "../../bench/generate-outreach-events.ts";
import { restPart } from "../../bench/generate-notifications-and-refreshes.ts";
import { createRandom } from "../random.ts";

/**
 * Returns functions that write a log like that of a busy service: first an import of `people` people, then rounds of
 * about fifty events each.
 */
export function createMixedLife(
  store: LogStore,
  append: (stream: string, newEvents: readonly NewEvent[]) => Promise<unknown>,
  people = 0,
): (rounds: number) => Promise<void> {
  const parts: readonly Part[] = [outreachPart(people), clicksPart(), restPart()];
  const random = createRandom(1);
  return async (rounds) => {
    for (let round = 0; round < rounds; round++) {
      let { position } = await store.head();
      const batches: (readonly [string, readonly NewEvent[]])[] = [];
      const emit: Emit = (stream, newEvents) => {
        batches.push([stream, newEvents]);
        position += newEvents.length;
        return position - newEvents.length + 1;
      };
      for (const part of parts) part(emit, random);
      for (const [stream, newEvents] of batches) if (newEvents.length > 0) await append(stream, newEvents);
    }
  };
}
