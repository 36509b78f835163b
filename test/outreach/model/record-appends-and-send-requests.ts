import type { EventStore } from "eventstore-lite";
import { StoreFull } from "eventstore-lite/testing";
import type { Event, Recorded } from "../../../events/event-types-and-codec.ts";
import type { Recipient } from "../../../events/outreach.ts";
import { findContact } from "../../../projections/contact-identity.ts";
import type { SocialNetwork } from "../../../src/networks/network.ts";
import type { Projector } from "../../../src/projector/projector.ts";
import { SHOWN_MS, type Accepted, type SimulatedNetwork } from "../../harness/in-process/social-network.ts";
import type { Process } from "./simulated-process.ts";

/** A process's request to the network to send a message, recorded when the process makes it. */
export interface Ask {
  readonly recipientId: string;
  /** Position of the log's last event when the process made this request to send a message. */
  readonly head: number;
  /** Time of the request by the network's clock, ms. */
  readonly at: number;
  /**
   * Time of the request as the process sees it, in ms: that of the log's clock, but not before the newest event that
   * the process knows.
   */
  readonly ownTime: number;
  /** Time of the request by the log's clock, which may have been set back, ms. */
  readonly clock: number;
  /** How far the machine's clock was ahead of `ownTime`, in ms. */
  readonly skewMs: number;
  /** False if the log's clock was moved and the process has not asked it for the time since. */
  readonly isTimeKnown: boolean;
  /** True if the requesting process itself knew that the recipient is suppressed. */
  readonly knewSuppressed: boolean;
  /**
   * The network's treatment of the request: the accepted message, if any, and the position of the log's end when the
   * request arrived. Undefined if the request never arrived.
   */
  took?: { readonly head: number; readonly accepted: Accepted | undefined };
}

/** Note of an appended event. It keeps the original data, which an erasure may remove from the log. */
export interface Noted {
  /** Time of the append, by the network's clock, ms. */
  readonly at: number;
  readonly data: Event["data"];
  /** Id of the person that the event is about, even if the event has only a handle. */
  readonly about: string | undefined;
  /** True for the last event of an append. Every copy of the log ends after such an event. */
  readonly isLast: boolean;
}

/** Observes each append and each request to the network, and notes the log's content at that moment. */
export interface Witness {
  /**
   * From now on, observes this log instead of the present one. `notes` describe the events that it already contains.
   */
  attend(store: EventStore<Event>, notes: readonly Noted[]): Promise<EventStore<Event>>;
  /** Wraps a second connection to the same log, to observe its appends too. */
  beside(store: EventStore<Event>): EventStore<Event>;
  /** Returns a {@link Noted} for each event in the log, in the order of the log. */
  notes(): readonly Noted[];
  /** Wraps the log so that writes of processes fail after a call of `refuse`. */
  refusing(store: EventStore<Event>): EventStore<Event>;
  /** Simulates a full disk for the processes: after `after` more writes, the next `writes` writes fail. */
  refuse(writes: number, after: number): void;
  head(): number;
  /**
   * Returns the position of the last event of the append that is `back` appends older than the newest one, but at least
   * `atLeast`.
   */
  headBefore(back: number, atLeast: number): number;
  readonly asks: readonly Ask[];
  /** Notes that a person opted out; the network shows their message `lateMs` later. */
  optOut(recipientId: string, lateMs: number): void;
  /**
   * Notes that a person's opt-out page has just confirmed their opt-out. From now on, no process may ask the network to
   * send them a message.
   */
  answerOptOut(recipientId: string): void;
  /** Id of a person -> time when their opt-out page first confirmed an opt-out, in ms by the network's clock. */
  readonly answeredOptOuts: ReadonlyMap<string, number>;
  /** Requests to send that were in flight when the recipient's opt-out page confirmed the opt-out. */
  readonly lateAsks: readonly Ask[];
  /**
   * Returns the time of each opt-out that the network already showed when the run began, by the id of the person who
   * wrote it.
   */
  optedOutBefore(runId: string): ReadonlyMap<string, number>;
  /** Time when the event at this position was appended, by the network's clock, ms. */
  appendedAt(position: number): number;
  /** The event as it was before any erasure. */
  asAppended(event: Recorded): Recorded;
  /** Id of the person that the event at this position is about; undefined if it is about no person. */
  about(position: number): string | undefined;
  /**
   * Runs `happening` once, after a run has decided on its next message and before the intent to send it is appended.
   */
  ambush(happening: (recipientId: string) => Promise<void>): void;
  /** Returns the network as this process sees it. Each request to send is noted. */
  watch(process: Process, caller: Caller): SocialNetwork;
}

/** State of a process that is noted with each of its requests. */
interface Caller {
  readonly projector: Projector;
  readonly network: SocialNetwork;
  readonly wallClock: () => number;
  readonly isTimeKnown: () => boolean;
}

/** Maximum time in ms that a request to send takes, unless its process is paused. */
const SEND_MS_MAX = 20_000;

export interface WitnessDeps {
  readonly now: () => number;
  readonly clock: () => number;
  readonly accepted: SimulatedNetwork["accepted"];
  /** Time that the network takes for an answer, in ms. */
  readonly answerMs: number;
  /** Returns the id of the person with this id or handle; a handle belongs to its present holder. */
  readonly holderOf: (who: Recipient) => string;
}

export function createWitness({ now, clock, accepted, answerMs, holderOf }: WitnessDeps): Witness {
  let noted: Noted[] = [];
  const asks: Ask[] = [];
  const optOuts: { readonly recipientId: string; readonly writtenAt: number; readonly visibleAt: number }[] = [];
  const lateAsks: Ask[] = [];
  const answeredOptOuts = new Map<string, number>();
  const beforeRuns = new Map<string, ReadonlyMap<string, number>>();
  const ambushes: ((recipientId: string) => Promise<void>)[] = [];
  let refused = { from: 0, to: 0 };
  let writes = 0;
  const begin = (runId: string): void => {
    const isShown = ({ writtenAt, visibleAt }: (typeof optOuts)[number]): boolean =>
      visibleAt <= now() && now() - writtenAt <= SHOWN_MS;
    const visible = optOuts.filter(isShown);
    beforeRuns.set(runId, new Map(visible.map(({ recipientId, writtenAt }) => [recipientId, writtenAt])));
  };
  const note = ({ data }: Event, isLast: boolean): void => {
    const about = "recipient" in data ? holderOf(data.recipient) : undefined;
    noted.push({ at: now(), data, about, isLast });
  };
  const admit = (): void => {
    writes += 1;
    if (writes > refused.from && writes <= refused.to) throw new StoreFull();
  };
  const beside: Witness["beside"] = (store) => ({
    ...store,
    async append(stream, events, options) {
      for (const { type, data } of events)
        if (type === "DirectMessageAttempted") await ambushes.shift()?.(data.recipient.id);
      const appended = await store.append(stream, events, options);
      for (const event of events) if (event.type === "RunStarted") begin(event.data.run_id);
      if (noted.length < appended.last) for (const event of events) note(event, event === events.at(-1));
      return appended;
    },
  });
  return {
    async attend(store, notes) {
      noted = notes.slice(0, (await store.head()).position);
      return beside(store);
    },
    beside,
    notes: () => [...noted],
    refusing: (store) => ({
      ...store,
      async append(...args) {
        admit();
        return store.append(...args);
      },
      leases: {
        ...store.leases,
        async acquire(...args) {
          admit();
          return store.leases.acquire(...args);
        },
      },
    }),
    refuse: (count, after) => {
      refused = { from: writes + after, to: writes + after + count };
    },
    head: () => noted.length,
    headBefore(back, atLeast) {
      const heads = [...noted.keys()].filter((at) => noted[at]?.isLast === true).map((at) => at + 1);
      return Math.max(atLeast, heads.at(-1 - back) ?? 0);
    },
    asks,
    ambush: (happening) => {
      ambushes.push(happening);
    },
    optOut: (recipientId, lateMs) => {
      optOuts.push({ recipientId, writtenAt: now(), visibleAt: now() + lateMs });
    },
    answerOptOut: (recipientId) => {
      answeredOptOuts.getOrInsert(recipientId, now());
      const isOnItsWay = (ask: Ask): boolean => ask.took === undefined && now() - ask.at < SEND_MS_MAX;
      lateAsks.push(...asks.filter((ask) => ask.recipientId === recipientId && isOnItsWay(ask)));
    },
    answeredOptOuts,
    lateAsks,
    optedOutBefore: (runId) => beforeRuns.get(runId) ?? new Map(),
    appendedAt: (position) => noted[position - 1]?.at ?? 0,
    asAppended: (event) => ({ ...event, data: noted[event.position - 1]?.data ?? event.data }) as Recorded,
    about: (position) => noted[position - 1]?.about,
    watch: (process, { projector, network, wallClock, isTimeKnown }) => ({
      ...process.wrap(network, answerMs),
      sendDm(token, recipientId, text) {
        const lastKnown = projector.time === undefined ? 0 : Date.parse(projector.time);
        const ownTime = Math.max(clock(), lastKnown);
        const ask: Ask = {
          recipientId,
          head: noted.length,
          at: now(),
          ownTime,
          clock: clock(),
          skewMs: wallClock() - ownTime,
          isTimeKnown: isTimeKnown(),
          knewSuppressed: findContact(projector.state("contacts"), { id: recipientId })?.suppressed === true,
        };
        asks.push(ask);
        const send = async () => {
          const before = accepted.length;
          const result = await network.sendDm(token, recipientId, text);
          ask.took = { head: noted.length, accepted: accepted[before] };
          return result;
        };
        return process.call("sendDm", send, answerMs);
      },
    }),
  };
}
