import { StoreFull, type EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../../events/catalog.ts";
import type { Recipient } from "../../../events/outreach.ts";
import { findContact } from "../../../projections/contacts.ts";
import type { SocialNetwork } from "../../../src/networks/network.ts";
import type { Projector } from "../../../src/projector/projector.ts";
import { SHOWN_MS, type Accepted, type SimulatedNetwork } from "../../harness/memory/social-network.ts";
import type { Process } from "./process.ts";

/** A request to send, from the moment that a process makes the call. */
export interface Ask {
  readonly recipientId: string;
  /** Position of the log's last event when the process made the call. */
  readonly head: number;
  /** By the network's clock, ms. */
  readonly at: number;
  /** The process's idea of now: the log's clock, but not before the last event that it knows, ms. */
  readonly ownTime: number;
  /** By the log's clock alone, which may have been set back, ms. */
  readonly clock: number;
  /** How far its machine's clock was ahead of `ownTime`, ms. */
  readonly skewMs: number;
  /** False if the log's clock was moved and the process has not heard from it since. */
  readonly isTimeKnown: boolean;
  /** True if the process itself knew that this person is suppressed. */
  readonly knewSuppressed: boolean;
  /** Set when the request reaches the network; undefined if it never does. */
  took?: { readonly head: number; readonly accepted: Accepted | undefined };
}

/** An event as it was appended; an erasure may have changed it since. */
export interface Noted {
  /** Time of the append, by the network's clock, ms. */
  readonly at: number;
  readonly data: Event["data"];
  /** The person that it is about, even if it names only a handle. */
  readonly about: string | undefined;
  /** True for the last event of an append; no copy of the log ends within one. */
  readonly isLast: boolean;
}

/** Observes each append and each request to send, with the log's content at that moment. */
export interface Witness {
  /** Watches a new log in place of the old one. The first `notes` describe the events that it already contains. */
  attend(store: EventStore<Event>, notes: readonly Noted[]): Promise<EventStore<Event>>;
  /** Watches the same log through a second connection. */
  beside(store: EventStore<Event>): EventStore<Event>;
  /** Notes of all events in the log. */
  notes(): readonly Noted[];
  /** Wraps the log so that its processes meet the failures of `refuse`. */
  refusing(store: EventStore<Event>): EventStore<Event>;
  /** Simulates a full disk for `writes` writes of processes, after `after` more. */
  refuse(writes: number, after: number): void;
  head(): number;
  /** The last position of the append that is `back` appends before the newest, but at least `atLeast`. */
  headBefore(back: number, atLeast: number): number;
  readonly asks: readonly Ask[];
  /** A person opts out; the network shows it `lateMs` later. */
  optOut(recipientId: string, lateMs: number): void;
  /** People whose opt-out the network already showed when the run began -> time when they wrote it. */
  optedOutBefore(runId: string): ReadonlyMap<string, number>;
  /** When the event at a position was appended, by the network's clock. */
  appendedAt(position: number): number;
  /** The event as it was before any erasure. */
  asAppended(event: Recorded): Recorded;
  /** The id of the person that the event is about; undefined if it is about no person. */
  about(position: number): string | undefined;
  /** Calls `happening` between the decision on the next intent and its append. */
  ambush(happening: (recipientId: string) => Promise<void>): void;
  /** The network as a process calls it. */
  watch(process: Process, caller: Caller): SocialNetwork;
}

/** The state of a process that its requests are recorded with. */
interface Caller {
  readonly projector: Projector;
  readonly network: SocialNetwork;
  readonly wallClock: () => number;
  readonly isTimeKnown: () => boolean;
}

export interface WitnessDeps {
  readonly now: () => number;
  readonly clock: () => number;
  readonly accepted: SimulatedNetwork["accepted"];
  /** How long the network takes for an answer. */
  readonly answerMs: number;
  /** The id of the person with this name: the present holder, if it is a handle alone. */
  readonly holderOf: (who: Recipient) => string;
}

export function createWitness({ now, clock, accepted, answerMs, holderOf }: WitnessDeps): Witness {
  let noted: Noted[] = [];
  const asks: Ask[] = [];
  const optOuts: { readonly recipientId: string; readonly writtenAt: number; readonly visibleAt: number }[] = [];
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
