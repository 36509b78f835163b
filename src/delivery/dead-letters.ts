import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { ChannelName } from "../../events/channel.ts";

/** A dispatch that was given up, and not taken up again since. */
export interface DeadLetter {
  readonly channel: ChannelName;
  readonly event_id: string;
  /** Position of the event whose dispatch it is. */
  readonly source: number;
  readonly attempts: number;
  /** The network said no, rather than the attempts running out. */
  readonly refused: boolean;
  readonly detail: string;
  readonly abandoned_at: string;
  /** Position of the event that gave it up. */
  readonly position: number;
}

/** All dead letters, the oldest first. Reads only the events that make and unmake them. */
export async function findDeadLetters(store: EventStore<Event>): Promise<readonly DeadLetter[]> {
  const letters = new Map<string, DeadLetter>();
  /** Position of a retry request -> position of the event it repeats. */
  const sources = new Map<number, number>();
  const types = ["ChannelDispatchAbandoned", "ChannelDispatchRetryRequested"];
  for await (const event of store.read({ types })) {
    if (event.type === "ChannelDispatchRetryRequested") {
      sources.set(event.position, event.data.source);
      letters.delete(`${event.data.channel} ${event.data.event_id}`);
    } else if (event.type === "ChannelDispatchAbandoned") {
      const { channel, event_id, owed, attempt, refused, detail } = event.data;
      const source = sources.get(owed) ?? owed;
      const letter = {
        channel,
        event_id,
        source,
        attempts: attempt,
        refused,
        detail,
        abandoned_at: event.time,
        position: event.position,
      };
      letters.set(`${channel} ${event_id}`, letter);
    }
  }
  return [...letters.values()];
}
