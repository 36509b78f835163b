import type { EventStore, Query } from "eventstore-lite";
import type { Event, Folded, Recorded } from "../../events/event-types-and-codec.ts";
import { STREAMS } from "../../src/log/event-log.ts";

/**
 * Creates a log in memory to read from: tests try thousands of histories, too many for the disk. Offers only a store's
 * reads, without snapshots.
 */
export function logInMemory(history: readonly Recorded[]): EventStore<Event> {
  const events = history.map((event) => ({ ...event, stream: streamOf(event) }));
  const select = ({ stream, types, from = 1, to = Infinity, until, backwards = false, limit }: Query): Recorded[] => {
    const found = events.filter(
      (event) =>
        (stream === undefined || event.stream === stream) &&
        (types === undefined || types.includes(event.type)) &&
        event.position >= from &&
        event.position <= to &&
        (until === undefined || Date.parse(event.time) <= until.getTime()),
    );
    return (backwards ? found.toReversed() : found).slice(0, limit);
  };
  const readings = {
    async *read(query: Query = {}): AsyncGenerator<Recorded> {
      yield* select(query);
    },
    async *readFolded(query: Query = {}): AsyncGenerator<readonly Folded[]> {
      const found = select(query);
      // Gives the events in batches of two, so that the reader's code between batches is tested too.
      for (let at = 0; at < found.length; at += 2) yield found.slice(at, at + 2);
    },
    snapshots: { list: async () => [] },
    head: async () => ({ position: events.length, hash: "", time: events.at(-1)?.time }),
  };
  return readings as unknown as EventStore<Event>;
}

/** Returns the stream to which the service appends such an event. */
function streamOf(event: Recorded): string {
  if (event.type === "LinkClicked") return STREAMS.link(event.data.domain, event.data.short_code);
  if (event.type === "DispatchRetryRequested") return STREAMS.requests;
  return event.stream;
}
