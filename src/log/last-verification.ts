import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../events/catalog.ts";

/** What came of the last verification that was recorded up to position `to`; undefined: there was none. */
export async function lastVerification(
  store: EventStore<Event>,
  to: number,
): Promise<Recorded<"LogVerified"> | undefined> {
  if (to < 1) return undefined;
  for await (const event of store.read({ types: ["LogVerified"], to, backwards: true, limit: 1 })) {
    if (event.type === "LogVerified") return event;
  }
  return undefined;
}
