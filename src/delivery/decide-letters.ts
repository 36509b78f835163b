import type { ChannelName } from "../../events/channel.ts";
import type { Deliveries } from "../../projections/deliveries.ts";
import type { EventLog, EventMetadata, NewEvent } from "../log/event-log.ts";
import type { Clock } from "../platform/clock.ts";
import type { Projector } from "../projector/projector.ts";
import { decideLetter, findDeadLetters, lookUpLetters, type DeadLetter } from "./dead-letters.ts";

/** Which dead letters an operator means. */
export interface Choice {
  /** Of the events whose dispatches they are; undefined: all of them. */
  readonly ids: readonly string[] | undefined;
  readonly channels: readonly ChannelName[];
  /** Only those that were given up by this position: nobody decides of what they have not seen. */
  readonly until?: number;
}

/**
 * Why a letter that was meant is left as it is. `suspended`: its channel would turn it away. `may_double`: an attempt may
 * have arrived, and the network would take a repeat for another one. `decided_meanwhile`: somebody else was faster.
 */
export type WhyLeft = "no_dead_letter" | "suspended" | "may_double" | "decided_meanwhile";

export interface Left {
  readonly event_id: string;
  /** Null where no channel has such a letter. */
  readonly channel: ChannelName | null;
  readonly why: WhyLeft;
}

/** What came of a decision: how many letters it was made of, and those that it was not made of. */
export interface Decided {
  readonly done: number;
  readonly left: readonly Left[];
}

export interface DecideDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
}

export interface RetryDeps extends DecideDeps {
  /** For how long the network of a channel takes a repeat for what it is, in ms; 0: it never does. */
  readonly recognisesMs: (channel: ChannelName) => number;
  readonly clock: Clock;
}

/** Makes dead letters pending again; without `acceptsDoubles` not those that may arrive twice. */
export function retryLetters(
  { recognisesMs, clock, ...deps }: RetryDeps,
  choice: Choice,
  acceptsDoubles: boolean,
  metadata: EventMetadata,
): Promise<Decided> {
  return decideLetters(deps, choice, metadata, {
    hindranceOf({ channel, doubtful_since }, states) {
      if (states[channel].suspended !== null) return "suspended";
      if (acceptsDoubles || doubtful_since === undefined) return undefined;
      return clock() - Date.parse(doubtful_since) >= recognisesMs(channel) ? "may_double" : undefined;
    },
    eventOf(letter) {
      const { event_id, source, channel } = letter;
      const data = { event_id, source, channel, ...doubtOf(letter, acceptsDoubles) };
      return { type: "DispatchRetryRequested", data };
    },
  });
}

/** What the next dispatch is to know of the attempts before, unless an operator has it sent whatever they came to. */
function doubtOf(
  { doubtful_since }: DeadLetter,
  acceptsDoubles: boolean,
): { readonly doubtful_since?: string; readonly may_double?: true } {
  if (doubtful_since === undefined) return {};
  return acceptsDoubles ? { may_double: true } : { doubtful_since };
}

/** A sentence or two for whoever reads the log later. */
export const WHY_CHARACTERS_MAX = 500;

/** Gives dead letters up for good. `why`: 1 to {@link WHY_CHARACTERS_MAX} characters. */
export function discardLetters(
  deps: DecideDeps,
  choice: Choice,
  why: string,
  metadata: EventMetadata,
): Promise<Decided> {
  return decideLetters(deps, choice, metadata, {
    hindranceOf: () => undefined,
    eventOf: ({ event_id, source, channel }) => ({
      type: "DispatchDiscarded",
      data: { event_id, source, channel, why },
    }),
  });
}

interface Decision {
  /** Why it is not made of a letter. */
  readonly hindranceOf: (letter: DeadLetter, states: Deliveries) => WhyLeft | undefined;
  readonly eventOf: (letter: DeadLetter) => NewEvent<"DispatchRetryRequested" | "DispatchDiscarded">;
}

/** Decisions appended together: each has a key of its own, and clicks are to find a place in the queue beside them. */
const APPENDS_AT_ONCE = 64;

async function decideLetters(
  { eventLog, projector }: DecideDeps,
  { ids, channels, until = Infinity }: Choice,
  metadata: EventMetadata,
  { hindranceOf, eventOf }: Decision,
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
  const left: Left[] = [...(wanted ?? [])]
    .filter((event_id) => !known.has(event_id))
    .map((event_id) => ({ event_id, channel: null, why: "no_dead_letter" }));
  let done = 0;
  for (let at = 0; at < meant.length; at += APPENDS_AT_ONCE) {
    const made = await Promise.all(
      meant.slice(at, at + APPENDS_AT_ONCE).map(async (letter): Promise<Left | undefined> => {
        const { event_id, channel } = letter;
        const hindrance = hindranceOf(letter, projector.state("deliveries"));
        if (hindrance !== undefined) return { event_id, channel, why: hindrance };
        const isFirst = await decideLetter(eventLog, letter, eventOf(letter), metadata);
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
