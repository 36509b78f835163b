import type { EventType, Recorded, LogStore } from "../../events/catalog.ts";
import type { ChannelName } from "../../events/channel.ts";
import { positionsOf } from "../../events/sources.ts";
import { channelsOf, type Deliveries } from "../../projections/deliveries.ts";
import { findEventNear } from "../history/find-event.ts";
import {
  type EventLog,
  type EventMetadata,
  type NewEvent,
  STREAMS,
  eventAt,
  eventsAt,
  inOrder,
} from "../log/event-log.ts";
import type { Clock } from "../platform/clock.ts";
import type { HandleDeps } from "../log/handle.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

/** A dispatch that was given up, and neither retried nor discarded since. */
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
export async function findDeadLetters(store: LogStore): Promise<readonly DeadLetter[]> {
  const letters = new Map<string, Unnamed>();
  /** Position of a retry request -> position of the event it repeats. */
  const sources = new Map<number, number>();
  /** Given up before: the same once more, as by a second process, makes no letter of what was decided since. */
  const known = new Set<string>();
  for await (const event of store.read({ types: DEAD_LETTER_EVENTS })) {
    if (event.type === "DispatchAbandoned") {
      for (const letter of toLetters(event, sources)) {
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
  store: LogStore,
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
  store: LogStore,
  known: Pick<DeadLetter, "event_id" | "channel" | "source" | "position" | "requested_at">,
): Promise<DeadLetter> {
  const { event_id, source, position, requested_at } = known;
  const event = await eventAt(store, position);
  const letters = event.type === "DispatchAbandoned" ? toLetters(event, new Map([[requested_at, source]])) : [];
  const letter = letters.find((one) => one.requested_at === requested_at);
  if (letter === undefined) throw new Error(`the event at ${position} gives up nothing that ${requested_at} requested`);
  return { event_id, ...letter };
}

type Unnamed = Omit<DeadLetter, "event_id">;

const DEAD_LETTER_EVENTS: readonly EventType[] = ["DispatchAbandoned", "DispatchRetryRequested", "DispatchDiscarded"];

function toLetters(
  { data: { channel, requests }, time, position }: Recorded<"DispatchAbandoned">,
  sources: ReadonlyMap<number, number>,
): Unnamed[] {
  return requests.flatMap((request) =>
    positionsOf(request.sources).map((requested_at) => {
      const source = sources.get(requested_at) ?? requested_at;
      const { attempt: attempts, refused, detail, doubtful_since } = request;
      const ending = { attempts, refused, detail, ...omitUndefined({ doubtful_since }) };
      return { channel, source, ...ending, abandoned_at: time, position, requested_at };
    }),
  );
}

/**
 * Appends what is decided of a dead letter. Of all decisions made of one letter at the same moment, of whatever kind and
 * by any caller, the first stands. Returns whether it is this one.
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

export interface LetterSelection {
  /** Of the events whose dispatches they are; undefined: all of them. */
  readonly ids: readonly string[] | undefined;
  readonly channels: readonly ChannelName[];
  /** Only those that were given up by this position: an operator decides only on letters they have seen. */
  readonly until?: number;
}

/**
 * Why a selected letter is left as it is. `suspended`: its channel would refuse it. `may_double`: an attempt may
 * have arrived, and the network would take a repeat for another one. `decided_meanwhile`: another caller was faster.
 */
export type NotAppliedReason = "no_dead_letter" | "suspended" | "may_double" | "decided_meanwhile";

export interface NotApplied {
  readonly event_id: string;
  /** Null where no channel has such a letter. */
  readonly channel: ChannelName | null;
  readonly why: NotAppliedReason;
}

/** The result of a decision: how many letters it was applied to, and the others with the reason. */
export interface Decided {
  readonly done: number;
  readonly left: readonly NotApplied[];
}

export type DecideDeps = Pick<HandleDeps, "eventLog" | "projector">;

export interface RetryDeps extends DecideDeps {
  /** For how long the network of a channel takes a repeat for what it is, in ms; 0: it never does. */
  readonly recognisesMs: (channel: ChannelName) => number;
  readonly clock: Clock;
}

/** Makes dead letters pending again; without `acceptsDoubles` not those that may arrive twice. */
export function retryLetters(
  { recognisesMs, clock, ...deps }: RetryDeps,
  selection: LetterSelection,
  acceptsDoubles: boolean,
  metadata: EventMetadata,
): Promise<Decided> {
  return decideLetters(deps, selection, metadata, {
    reasonToSkip({ channel, doubtful_since }, states) {
      if (states[channel].suspended !== null) return "suspended";
      if (acceptsDoubles || doubtful_since === undefined) return undefined;
      return clock() - Date.parse(doubtful_since) >= recognisesMs(channel) ? "may_double" : undefined;
    },
    toEvent(letter) {
      const { event_id, source, channel, doubtful_since } = letter;
      // What the next dispatch has to know of the attempts before it, unless an operator accepts a double.
      const isDoubtful = doubtful_since !== undefined;
      const before = isDoubtful && acceptsDoubles ? { may_double: true as const } : omitUndefined({ doubtful_since });
      return { type: "DispatchRetryRequested", data: { event_id, source, channel, ...before } };
    },
  });
}

/** A sentence or two for later readers of the log. */
export const WHY_CHARACTERS_MAX = 500;

/** Gives dead letters up for good. `why`: 1 to {@link WHY_CHARACTERS_MAX} characters. */
export function discardLetters(
  deps: DecideDeps,
  selection: LetterSelection,
  why: string,
  metadata: EventMetadata,
): Promise<Decided> {
  return decideLetters(deps, selection, metadata, {
    reasonToSkip: () => undefined,
    toEvent: ({ event_id, source, channel }) => {
      return { type: "DispatchDiscarded", data: { event_id, source, channel, why } };
    },
  });
}

interface Decision {
  /** Why it is not applied to a letter; undefined: it is. */
  readonly reasonToSkip: (letter: DeadLetter, states: Deliveries) => NotAppliedReason | undefined;
  readonly toEvent: (letter: DeadLetter) => NewEvent<"DispatchRetryRequested" | "DispatchDiscarded">;
}

/** Decisions appended together: each has a key of its own, and clicks are to find a place in the queue beside them. */
const APPENDS_AT_ONCE = 64;

async function decideLetters(
  { eventLog, projector }: DecideDeps,
  { ids, channels, until = Infinity }: LetterSelection,
  metadata: EventMetadata,
  { reasonToSkip, toEvent }: Decision,
): Promise<Decided> {
  const { store } = eventLog;
  const wanted = ids && new Set(ids);
  await projector.until((await store.head()).position);
  const lookedUp = wanted && (await lookUpLetters(store, () => projector.state("deliveries"), [...wanted]));
  const letters = lookedUp ?? (await findDeadLetters(store));
  const meant = letters.filter(({ event_id, channel, position }) => {
    return channels.includes(channel) && position <= until && (wanted === undefined || wanted.has(event_id));
  });
  const known = new Set(meant.map(({ event_id }) => event_id));
  const left: NotApplied[] = [...(wanted ?? [])]
    .filter((event_id) => !known.has(event_id))
    .map((event_id) => ({ event_id, channel: null, why: "no_dead_letter" }));
  let done = 0;
  for (let at = 0; at < meant.length; at += APPENDS_AT_ONCE) {
    const made = await Promise.all(
      meant.slice(at, at + APPENDS_AT_ONCE).map(async (letter): Promise<NotApplied | undefined> => {
        const { event_id, channel } = letter;
        const skip = reasonToSkip(letter, projector.state("deliveries"));
        if (skip !== undefined) return { event_id, channel, why: skip };
        const isFirst = await decideLetter(eventLog, letter, toEvent(letter), metadata);
        return isFirst ? undefined : { event_id, channel, why: "decided_meanwhile" };
      }),
    );
    for (const one of made) {
      if (one === undefined) done++;
      else left.push(one);
    }
  }
  await projector.until((await store.head()).position);
  return { done, left };
}
