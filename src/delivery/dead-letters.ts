import type { EventStore } from "eventstore-lite";
import type { Event, EventType, Recorded } from "../../events/catalog.ts";
import type { ChannelName } from "../../events/channel.ts";
import type { RequestOf } from "../../events/dispatches.ts";
import { positionsOf } from "../../events/sources.ts";
import { channelsOf, type Deliveries } from "../../projections/deliveries.ts";
import { findEventNear } from "../history/find-event.ts";
import { eventAt, eventsAt, inOrder } from "../log/events-at.ts";
import { STREAMS, type EventMetadata, type NewEvent, type EventLog } from "../log/event-log.ts";

/** A dispatch that was given up, and neither taken up again nor discarded since. */
export interface DeadLetter {
  readonly channel: ChannelName;
  /** Of the event at `source`. */
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
  /** Position of what requested the dispatch that was given up: `source`, or the last retry. */
  readonly requested_at: number;
}

/** All dead letters, the oldest first. Reads only the events that make and unmake them, and their sources. */
export async function findDeadLetters(store: EventStore<Event>): Promise<readonly DeadLetter[]> {
  const letters = new Map<string, Unnamed>();
  /** Position of a retry request -> position of the event it repeats. */
  const sources = new Map<number, number>();
  /** Given up before: the same once more, as by a second process, makes no letter of what was decided since. */
  const known = new Set<string>();
  for await (const event of store.read({ types: MAKE_AND_UNMAKE })) {
    if (event.type === "DispatchAbandoned") {
      for (const letter of lettersOf(event, sources)) {
        const dispatch = `${letter.channel} ${letter.requested_at}`;
        if (!known.has(dispatch)) letters.set(`${letter.channel} ${letter.source}`, letter);
        known.add(dispatch);
      }
    } else if (event.type === "DispatchRetryRequested" || event.type === "DispatchDiscarded") {
      const { channel, source } = event.data;
      letters.delete(`${channel} ${source}`);
      if (event.type === "DispatchRetryRequested") sources.set(event.position, source);
    }
  }
  const ids = new Map<number, string>();
  const positions = inOrder([...letters.values()].map(({ source }) => source));
  for await (const { position, id } of eventsAt(store, positions)) ids.set(position, id);
  return [...letters.values()].map((letter) => ({ event_id: ids.get(letter.source) ?? "", ...letter }));
}

/** Letters looked up one by one; of more it is faster to read all. */
const LOOKED_UP_MAX = 20;

/**
 * The dead letters of these events, of whatever channel, found by the projection: it need not be read how all others came
 * about. Undefined: that does not find all of them, and {@link findDeadLetters} does.
 */
export async function lookUpLetters(
  store: EventStore<Event>,
  deliveries: () => Deliveries,
  ids: readonly string[],
): Promise<readonly DeadLetter[] | undefined> {
  if (ids.length > LOOKED_UP_MAX) return undefined;
  const found: DeadLetter[] = [];
  for (const event_id of ids) {
    const reading = { store, to: (await store.head()).position, onProgress: () => {} };
    const position = (await findEventNear(reading, event_id))?.position;
    if (position === undefined) return undefined;
    for (const [channel, { letters, dead }] of channelsOf(deliveries())) {
      const place = letters.listed.get(position);
      if (place !== undefined) found.push(await letterAt(store, { event_id, channel, source: position, ...place }));
      else if (dead > letters.listed.size) return undefined;
    }
  }
  return found;
}

async function letterAt(
  store: EventStore<Event>,
  known: Pick<DeadLetter, "event_id" | "channel" | "source" | "position" | "requested_at">,
): Promise<DeadLetter> {
  const { event_id, source, position, requested_at } = known;
  const event = await eventAt(store, position);
  const letters = event.type === "DispatchAbandoned" ? lettersOf(event, new Map([[requested_at, source]])) : [];
  const letter = letters.find((one) => one.requested_at === requested_at);
  if (letter === undefined) throw new Error(`the event at ${position} gives up nothing that ${requested_at} requested`);
  return { event_id, ...letter };
}

type Unnamed = Omit<DeadLetter, "event_id">;

const MAKE_AND_UNMAKE: readonly EventType[] = ["DispatchAbandoned", "DispatchRetryRequested", "DispatchDiscarded"];

function lettersOf(
  { data: { channel, requests }, time, position }: Recorded<"DispatchAbandoned">,
  sources: ReadonlyMap<number, number>,
): Unnamed[] {
  return requests.flatMap((request) =>
    positionsOf(request.sources).map((requested_at) => {
      const source = sources.get(requested_at) ?? requested_at;
      return { channel, source, ...endOf(request), abandoned_at: time, position, requested_at };
    }),
  );
}

function endOf({ attempt, refused, detail, doubtful_since }: RequestOf<"DispatchAbandoned">) {
  return { attempts: attempt, refused, detail, ...(doubtful_since === undefined ? {} : { doubtful_since }) };
}

/**
 * Appends what is decided of a dead letter. Of all decisions made of one letter at the same moment, of whatever kind and
 * by whomever, the first stands; answers whether it is this one.
 */
export async function decideLetter(
  eventLog: EventLog,
  { channel, requested_at }: DeadLetter,
  newEvent: NewEvent<"DispatchRetryRequested" | "DispatchDiscarded">,
  metadata: EventMetadata,
): Promise<boolean> {
  const { repeated } = await eventLog.append(STREAMS.requests, [newEvent], metadata, {
    key: `letter/${channel}/${requested_at}`,
  });
  return !repeated;
}
