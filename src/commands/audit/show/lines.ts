import type { Recorded } from "../../../../events/catalog.ts";
import { isOutcome, narrowedTo } from "../../../../events/dispatches.ts";
import { printable } from "../../shared/table.ts";
import { describeEvent } from "../../../history/words.ts";

/** One event as a line for people; of an outcome, what it says of these dispatches. */
export function formatEventLine(event: Recorded, dispatches?: Dispatches): string {
  return `${event.position} ${event.time} ${printable(describe(event, dispatches))}\n`;
}

/** One event as a line for programs. */
export function formatEventJson(event: Recorded, dispatches?: Dispatches): string {
  return `${JSON.stringify(toEventJson(event, dispatches))}\n`;
}

/** One event whole as an export writes it, and in words of these dispatches. */
export function toEventJson(event: Recorded, dispatches?: Dispatches): object {
  const { position, id, stream, version, type, time, data, meta, hash } = event;
  const words = describe(event, dispatches);
  return { position, id, stream, version, type, time, words, data, meta, hash };
}

/** Positions at which dispatches were requested. */
type Dispatches = Pick<ReadonlySet<number>, "has">;

function describe(event: Recorded, dispatches: Dispatches | undefined): string {
  if (dispatches === undefined || !isOutcome(event)) return describeEvent(event);
  return describeEvent(narrowedTo(event, dispatches) ?? event);
}
