import { randomUUID } from "node:crypto";
import type { NewEvent } from "../../event-store-interface.ts";

export function newEvent(type = "Tested", data: unknown = {}): NewEvent {
  return { id: randomUUID(), type, data, meta: {} };
}

/** Returns `count` new test events of one type. */
export function newEvents(count: number, type = "Tested"): NewEvent[] {
  return Array.from({ length: count }, (_, index) => newEvent(type, { index }));
}

/** Takes the first `count` elements, or all, and then ends the iteration. */
export async function take<Element>(elements: AsyncIterable<Element>, count: number = Infinity): Promise<Element[]> {
  const taken: Element[] = [];
  for await (const element of elements) {
    taken.push(element);
    if (taken.length >= count) break;
  }
  return taken;
}

/**
 * Returns the error of a rejected promise; undefined if it resolves. The runner's own `rejects` blocks the event loop
 * until the promise settles, so a store that needs a later turn to answer would never do so.
 */
export function refusalOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (fault: unknown) => fault,
  );
}
