import type { DataOf, EventType, LogStore } from "../../events/event-types-and-codec.ts";
import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import {
  listEnded,
  noDeadLetters,
  takeUp,
  type DeadLetters,
  type LetterPlace,
  type LetterStatus,
} from "../../projections/dead-letters.ts";
import { findChannel, type Deliveries } from "../../projections/deliveries.ts";
import { findEventNear } from "../history/find-event.ts";
import {
  type EventLog,
  type EventMetadata,
  type NewEvent,
  STREAMS,
  eventsAt,
  inOrder,
  type StateContext,
} from "../log/event-log.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { isClickOn, matchesEnding, selectedChannels, type DispatchFilter } from "./dead-letter-filter.ts";

type DecisionType = "DispatchRetryRequested" | "DispatchDiscarded" | "DispatchSettled";

/**
 * Dead letter: a dispatch that was given up or is in doubt, and that no operator has retried, discarded or settled
 * since.
 */
export interface DeadLetter extends LetterPlace {
  readonly channel: ChannelName;
  /** Position of the event that the dispatch sends. */
  readonly source: number;
}

const DECIDED_OR_ENDED: readonly EventType[] = [
  "DispatchAbandoned",
  "DispatchInDoubt",
  "DispatchRetryRequested",
  "DispatchDiscarded",
  "DispatchSettled",
];

/**
 * Reads complete lists of dead letters up to position `to`; the projection keeps only the newest. Does not read events
 * of success, so a dispatch that one process delivered and another recorded as failed later is listed here.
 */
export async function listAllLetters(store: LogStore, to: number): Promise<(channel: ChannelName) => DeadLetters> {
  const all = new Map<ChannelName, { readonly letters: DeadLetters; readonly ended: Set<number> }>();
  for await (const batch of store.readFolded({ types: DECIDED_OR_ENDED, to })) {
    for (const event of batch) {
      if (!("channel" in event.data) || event.data.channel === undefined) continue;
      const { channel } = event.data;
      const { letters, ended } = all.get(channel) ?? { letters: noDeadLetters(), ended: new Set<number>() };
      all.set(channel, { letters, ended });
      // Another process may record the same outcome a second time. If an operator has decided on the letter in between,
      // the second record must not list it again.
      const isNews = (requested_at: number): boolean => ended.size < ended.add(requested_at).size;
      if (event.type === "DispatchAbandoned" || event.type === "DispatchInDoubt")
        listEnded(letters, event, isNews, Infinity);
      else if (event.type === "DispatchRetryRequested") takeUp(letters, event);
      else if (event.type === "DispatchDiscarded") letters.dead.delete(event.data.source);
      else if (event.type === "DispatchSettled") letters.in_doubt.delete(event.data.source);
    }
  }
  return (channel) => all.get(channel)?.letters ?? noDeadLetters();
}

/** State of the deliveries projection after the event at `position`. */
export interface DeliveriesAt {
  readonly deliveries: Deliveries;
  readonly position: number;
}

/**
 * Finds all dead letters that match, in the order in which they ended. Reads the log only if the projection does not
 * list all. A caller that wants both statuses passes `listAll`, so that the log is read once.
 */
export async function findLetters(
  store: LogStore,
  { deliveries, position }: DeliveriesAt,
  filter: DispatchFilter,
  listAll = () => listAllLetters(store, position),
): Promise<readonly DeadLetter[]> {
  const { status, link } = filter;
  const channels = selectedChannels(filter, deliveries);
  const listed = (name: ChannelName) => findChannel(deliveries, name);
  const isListed = channels.every((name) => listed(name).letters[status].size === listed(name)[status]);
  const lettersOn = isListed ? (name: ChannelName) => listed(name).letters : await listAll();
  const found: DeadLetter[] = [];
  for (const channel of channels) {
    for (const [source, place] of lettersOn(channel)[status]) {
      if (matchesEnding(filter, place)) found.push({ channel, source, ...place });
    }
  }
  found.sort((one, other) => one.position - other.position || one.source - other.source);
  if (link === undefined || found.length === 0) return found;
  const clicked = new Set<number>();
  for await (const event of eventsAt(store, inOrder(found.map(({ source }) => source)))) {
    if (isClickOn(link, event)) clicked.add(event.position);
  }
  return found.filter(({ source }) => clicked.has(source));
}

/**
 * Appends an operator's decision on a dead letter. If several decisions on one letter are made at the same moment, only
 * the first one counts. Returns true if this decision counts.
 */
export async function decideLetter(
  eventLog: EventLog,
  { channel, requested_at }: DeadLetter,
  newEvent: NewEvent<DecisionType>,
  metadata: EventMetadata,
): Promise<boolean> {
  const { repeated } = await eventLog.append(STREAMS.requests, [newEvent], metadata, {
    key: `letter/${channel}/${requested_at}`,
  });
  return !repeated;
}

export interface LetterSelection {
  /** Ids of the events whose dead letters are selected. Undefined if all that match the filter are selected. */
  readonly ids: readonly string[] | undefined;
  readonly filter: DispatchFilter;
  /**
   * Last position of the selection: dead letters that ended later are left out, because the operator has not seen them.
   */
  readonly until?: number;
}

/** Options of an operator's decision on dead letters. */
export interface DecisionOptions {
  /** True to count the dead letters that the decision would apply to, without applying it. */
  readonly isDryRun?: boolean;
  /** Number of dead letters that the operator was told of. If it has changed, no decision is made. */
  readonly expected?: number;
}

/**
 * Reason why a decision skips a dead letter. `suspended`: the channel is suspended; `may_double`: a retry could arrive
 * twice; `several_channels`: it is in doubt on several channels, and the decision names none.
 */
export type NotAppliedReason =
  "no_dead_letter" | "not_in_doubt" | "suspended" | "may_double" | "several_channels" | "decided_meanwhile";

export interface NotApplied {
  readonly event_id: string;
  /** Channel of the skipped dead letter; null if no channel has such a letter. */
  readonly channel: ChannelName | null;
  readonly why: NotAppliedReason;
}

const WHY_SKIPPED: Readonly<Record<NotAppliedReason, (one: NotApplied) => string>> = {
  no_dead_letter: ({ event_id }) => `${event_id} is no dead letter`,
  not_in_doubt: ({ event_id }) => `${event_id} is not in doubt`,
  suspended: ({ channel }) => `${channel} is suspended: resume it first`,
  may_double: ({ channel }) => `an attempt at ${channel} may have arrived, so a retry may arrive twice`,
  several_channels: ({ event_id, channel }) => `${event_id} is in doubt on ${channel} and others: name one channel`,
  decided_meanwhile: () => "another caller decided at the same moment",
};

/** Describes for people why a dead letter was skipped. */
export function describeSkipped(one: NotApplied): string {
  return WHY_SKIPPED[one.why](one);
}

/**
 * Result of a decision on dead letters: the number that it was, or would be, applied to, and the skipped ones with
 * their reasons.
 */
export interface Decided {
  readonly kind: "decided";
  readonly done: number;
  readonly left: readonly NotApplied[];
  /** Position up to which dead letters are counted, by when they ended. */
  readonly until: number;
}

/**
 * Refusal of a decision: it would apply to another number of dead letters than the operator expected, so nothing was
 * done.
 */
export interface NumberChanged {
  readonly kind: "number_changed";
  readonly number: number;
}

export interface RetryOptions extends DecisionOptions {
  readonly acceptsDoubles: boolean;
  /** Returns how long the channel's network recognises a repeated dispatch, in ms; 0 if it never does. */
  readonly recognisesMs: (channel: ChannelName) => number;
}

/**
 * Makes dead letters, or one dispatch in doubt, pending again. Skips letters that may arrive twice, unless
 * `acceptsDoubles` is set.
 */
export function retryLetters(
  context: StateContext,
  selection: LetterSelection,
  { acceptsDoubles, recognisesMs, ...options }: RetryOptions,
  metadata: EventMetadata,
): Promise<Decided | NumberChanged> {
  const { status } = selection.filter;
  const now = context.clock();
  return decideLetters(context, selection, options, metadata, {
    reasonToSkip(letter, states) {
      if (findChannel(states, letter.channel).suspended !== null) return "suspended";
      return !acceptsDoubles && mayDouble(letter, status, now, recognisesMs) ? "may_double" : undefined;
    },
    toEvent(event_id, { source, channel, failure: { doubtful_since } }) {
      const about = { event_id, source, channel };
      if (status === "in_doubt")
        return { type: "DispatchRetryRequested", data: { ...about, may_double: true, in_doubt: true } };
      // The event carries `doubtful_since`, the time since which an attempt may have arrived, for the next dispatcher.
      // If the operator accepts that the dispatch may arrive twice, the event carries `may_double` instead.
      const isDoubtful = doubtful_since !== undefined;
      const before = isDoubtful && acceptsDoubles ? { may_double: true as const } : omitUndefined({ doubtful_since });
      return { type: "DispatchRetryRequested", data: { ...about, ...before } };
    },
  });
}

/** True if an attempt at the dead letter may have arrived, and the network would no longer recognise a repeat. */
export function mayDouble(
  { channel, failure: { doubtful_since } }: DeadLetter,
  status: LetterStatus,
  now: number,
  recognisesMs: RetryOptions["recognisesMs"],
): boolean {
  if (status === "in_doubt") return true;
  return doubtful_since !== undefined && now - Date.parse(doubtful_since) >= recognisesMs(channel);
}

/** Maximum length of the reason for a decision, in characters: a sentence or two for later readers of the log. */
export const WHY_CHARACTERS_MAX = 500;

/** Gives dead letters up for good. `why`: the reason, 1 to {@link WHY_CHARACTERS_MAX} characters. */
export function discardLetters(
  context: StateContext,
  selection: LetterSelection,
  { why, ...options }: DecisionOptions & { readonly why: string },
  metadata: EventMetadata,
): Promise<Decided | NumberChanged> {
  return decideLetters(context, selection, options, metadata, {
    reasonToSkip: () => undefined,
    toEvent: (event_id, { source, channel }) => {
      return { type: "DispatchDiscarded", data: { event_id, source, channel, why } };
    },
  });
}

/** An operator's finding about a dispatch in doubt: it arrived, or it stays unknown. */
export type Settled = DataOf<"DispatchSettled">["as"];

/** Settles dispatches in doubt. `why`: the reason, 1 to {@link WHY_CHARACTERS_MAX} characters. */
export function settleLetters(
  context: StateContext,
  selection: LetterSelection,
  { as, why, ...options }: DecisionOptions & { readonly as: Settled; readonly why: string },
  metadata: EventMetadata,
): Promise<Decided | NumberChanged> {
  return decideLetters(context, selection, options, metadata, {
    reasonToSkip: () => undefined,
    toEvent: (event_id, { source, channel }) => {
      return { type: "DispatchSettled", data: { event_id, source, channel, as, why } };
    },
  });
}

interface Decision {
  /** Returns why the decision skips a dead letter; undefined if the decision applies to it. */
  readonly reasonToSkip: (letter: DeadLetter, states: Deliveries) => NotAppliedReason | undefined;
  readonly toEvent: (event_id: string, letter: DeadLetter) => NewEvent<DecisionType>;
}

/**
 * Maximum number of decisions on dead letters that are appended at the same time. Each append has its own idempotency
 * key, and clicks must still find room in the queue.
 */
const APPENDS_AT_ONCE = 64;

async function decideLetters(
  { eventLog, projector }: StateContext,
  selection: LetterSelection,
  { isDryRun = false, expected }: DecisionOptions,
  metadata: EventMetadata,
  { reasonToSkip, toEvent }: Decision,
): Promise<Decided | NumberChanged> {
  const { store } = eventLog;
  await projector.until((await store.head()).position);
  const states = (): Deliveries => projector.state("deliveries");
  const { position } = projector;
  const until = Math.min(selection.until ?? Infinity, position);
  const at = { deliveries: states(), position };
  const { letters, left, ids: known } = await select(store, at, { ...selection, until });
  const skipped = letters.flatMap((letter) => {
    const why = reasonToSkip(letter, states());
    return why === undefined ? [] : [{ letter, why }];
  });
  const number = letters.length - skipped.length;
  if (expected !== undefined && expected !== number) return { kind: "number_changed", number };
  if (isDryRun) {
    const passedOver = skipped.map(({ letter }) => letter);
    const ids = known ?? (await readIds(store, passedOver));
    const named = skipped.map(({ letter: { source, channel }, why }) => {
      return { event_id: ids.get(source) ?? "", channel, why };
    });
    return { kind: "decided", done: number, left: [...left, ...named], until };
  }
  let done = 0;
  for (let next = 0; next < letters.length; next += APPENDS_AT_ONCE) {
    const chunk = letters.slice(next, next + APPENDS_AT_ONCE);
    const ids = known ?? (await readIds(store, chunk));
    const made = await Promise.all(
      chunk.map(async (letter): Promise<NotApplied | undefined> => {
        const { channel, source } = letter;
        const event_id = ids.get(source) ?? "";
        const why = reasonToSkip(letter, states());
        if (why !== undefined) return { event_id, channel, why };
        const isFirst = await decideLetter(eventLog, letter, toEvent(event_id, letter), metadata);
        return isFirst ? undefined : { event_id, channel, why: "decided_meanwhile" };
      }),
    );
    for (const one of made) {
      if (one === undefined) done++;
      else left.push(one);
    }
  }
  await projector.until((await store.head()).position);
  return { kind: "decided", done, left, until };
}

/**
 * Selects dead letters. `left`: events named by the caller that are no dead letter, or are in doubt on several
 * channels. `ids`: if the caller named events, their ids by position.
 */
async function select(store: LogStore, at: DeliveriesAt, { ids, filter, until }: Required<LetterSelection>) {
  const all = (await findLetters(store, at, filter)).filter(({ position }) => position <= until);
  if (ids === undefined) return { letters: all, left: [] as NotApplied[] };
  const wanted = new Set(ids);
  const named = await findNamed(store, at.position, all, wanted);
  const known = new Set(named.map(({ event_id }) => event_id));
  const unknown = filter.status === "dead" ? "no_dead_letter" : "not_in_doubt";
  const left = [...wanted.difference(known)].map((event_id): NotApplied => ({ event_id, channel: null, why: unknown }));
  const letters = named.map(({ letter }) => letter);
  const byPosition = new Map(named.map(({ event_id, letter: { source } }) => [source, event_id]));
  if (filter.status === "dead") return { letters, left, ids: byPosition };
  // A dispatch in doubt on several channels is left out, because an operator knows for one channel at a time whether it
  // arrived.
  const channelsOf = Map.groupBy(named, ({ event_id }) => event_id);
  const isAlone = ({ event_id }: (typeof named)[number]): boolean => channelsOf.get(event_id)?.length === 1;
  const several = named
    .filter((one) => !isAlone(one))
    .map(({ event_id, letter: { channel } }): NotApplied => ({ event_id, channel, why: "several_channels" }));
  const alone = named.filter(isAlone).map(({ letter }) => letter);
  return { letters: alone, left: [...left, ...several], ids: byPosition };
}

/** Maximum number of events that are looked up one by one by their ids. For more, reading all ids is faster. */
const LOOKED_UP_MAX = 20;

async function findNamed(store: LogStore, to: number, letters: readonly DeadLetter[], wanted: ReadonlySet<string>) {
  if (letters.length === 0) return [];
  const near = wanted.size <= LOOKED_UP_MAX ? await findNear(store, to, wanted) : undefined;
  const ids = near ?? (await readIds(store, letters));
  return letters.flatMap((letter) => {
    const event_id = ids.get(letter.source);
    return event_id === undefined || !wanted.has(event_id) ? [] : [{ event_id, letter }];
  });
}

/**
 * Finds events by their ids and maps their positions to the ids. Undefined if an event is not near the time that its id
 * states.
 */
async function findNear(store: LogStore, to: number, wanted: ReadonlySet<string>) {
  const reading = { store, to, onProgress: () => {} };
  const found = new Map<number, string>();
  for (const id of wanted) {
    const event = await findEventNear(reading, id);
    if (event === undefined) return undefined;
    found.set(event.position, id);
  }
  return found;
}

/** Reads the ids of the events that these dead letters send, by the events' positions. */
async function readIds(store: LogStore, letters: readonly DeadLetter[]): Promise<ReadonlyMap<number, string>> {
  const positions = inOrder(letters.map(({ source }) => source));
  return new Map(await Array.fromAsync(eventsAt(store, positions), ({ position, id }) => [position, id]));
}
