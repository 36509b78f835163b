import type { EventStore } from "eventstore-lite";
import type { Event, EventType, Recorded } from "../../events/catalog.ts";
import type { ChannelName } from "../../events/channel.ts";
import { STREAMS, type EventMetadata, type NewEvent, type EventLog } from "../log/event-log.ts";

/** A dispatch that was given up, and neither taken up again nor discarded since. */
export interface DeadLetter {
  readonly channel: ChannelName;
  readonly event_id: string;
  /** Position of the event whose dispatch it is. */
  readonly source: number;
  readonly attempts: number;
  /** The network said no, rather than the attempts running out. */
  readonly refused: boolean;
  readonly detail: string;
  /** An attempt may have arrived, the first of them at this time: a repeat is safe only while the network knows it. */
  readonly doubtful_since?: string;
  readonly abandoned_at: string;
  /** Position of the event that gave it up. */
  readonly position: number;
}

/** All dead letters, the oldest first. Reads only the events that make and unmake them. */
export async function findDeadLetters(store: EventStore<Event>): Promise<readonly DeadLetter[]> {
  const letters = new Map<string, DeadLetter>();
  /** Position of a retry request -> position of the event it repeats. */
  const sources = new Map<number, number>();
  /** Given up before: the same told once more, as by a second process, makes no letter of what was decided since. */
  const known = new Set<string>();
  for await (const event of store.read({ types: MAKE_AND_UNMAKE })) {
    if (event.type === "DispatchAbandoned") {
      const letter = letterOf(event, sources.get(event.data.owed) ?? event.data.owed);
      const dispatch = `${letter.channel} ${event.data.owed}`;
      if (!known.has(dispatch)) letters.set(`${letter.channel} ${letter.source}`, letter);
      known.add(dispatch);
    } else if (event.type === "DispatchRetryRequested" || event.type === "DispatchDiscarded") {
      const { channel, source } = event.data;
      letters.delete(`${channel} ${source}`);
      if (event.type === "DispatchRetryRequested") sources.set(event.position, source);
    }
  }
  return [...letters.values()];
}

const MAKE_AND_UNMAKE: readonly EventType[] = ["DispatchAbandoned", "DispatchRetryRequested", "DispatchDiscarded"];

function letterOf({ data, time, position }: Recorded<"DispatchAbandoned">, source: number): DeadLetter {
  const { channel, event_id, attempt, refused, detail, doubtful_since } = data;
  const doubt = doubtful_since === undefined ? {} : { doubtful_since };
  return { channel, event_id, source, attempts: attempt, refused, detail, ...doubt, abandoned_at: time, position };
}

/**
 * Appends what is decided of a dead letter. Of all decisions made of one letter at the same moment, of whatever kind and
 * by whomever, the first stands; answers whether it is this one.
 */
export async function decideLetter(
  eventLog: EventLog,
  { channel, position }: DeadLetter,
  newEvent: NewEvent<"DispatchRetryRequested" | "DispatchDiscarded">,
  metadata: EventMetadata,
): Promise<boolean> {
  const { repeated } = await eventLog.append(STREAMS.requests, [newEvent], metadata, {
    key: `letter/${channel}/${position}`,
  });
  return !repeated;
}
