import { StoreFull, type EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../../events/catalog.ts";
import type { Recipient } from "../../../events/outreach.ts";
import { findContact } from "../../../projections/contacts.ts";
import type { SocialNetwork } from "../../../src/networks/network.ts";
import type { Projector } from "../../../src/projector/projector.ts";
import { SHOWN_MS, type Accepted, type SimulatedNetwork } from "../../harness/memory/social-network.ts";
import type { Process } from "./process.ts";

/** A request to send, from the moment a process decided on it. */
export interface Ask {
  readonly recipientId: string;
  /** Position of the log's last event when the process made the call. */
  readonly head: number;
  /** By the network's clock, ms. */
  readonly at: number;
  /** By the log's clock and by the last event the process knew of: what it has to take for now, ms. */
  readonly ownTime: number;
  /** By the log's clock alone, which may have been set back, ms. */
  readonly clock: number;
  /** How far the clock of its machine was ahead of that. */
  readonly skewMs: number;
  /** False: the log's clock was moved, and nothing told the process. */
  readonly isTimeKnown: boolean;
  /** The process itself knew that this person wants nothing. */
  readonly knewSuppressed: boolean;
  /** When it reached the network; undefined if it never did. */
  took?: { readonly head: number; readonly accepted: Accepted | undefined };
}

/** What an event said when it was appended: it may have been erased since. */
export interface Noted {
  /** When that was, by the network's clock, ms. */
  readonly at: number;
  readonly data: Event["data"];
  /** The person it is about, also where it only names a handle. */
  readonly about: string | undefined;
  /** The last of its append: no copy of the log ends in the middle of one. */
  readonly isLast: boolean;
}

/** Sees every append and every request to send, with what the log held at that moment. */
export interface Witness {
  /** The log as it is from now on, as it is written to before our eyes. What it holds already is the beginning of `notes`. */
  attend(store: EventStore<Event>, notes: readonly Noted[]): Promise<EventStore<Event>>;
  /** The same log as it was opened another time. */
  beside(store: EventStore<Event>): EventStore<Event>;
  /** Of all that the log holds now. */
  notes(): readonly Noted[];
  /** The same log, as processes write to it. */
  refusing(store: EventStore<Event>): EventStore<Event>;
  /** The disk is full for some writes of processes, once there were `after` more. */
  refuse(writes: number, after: number): void;
  head(): number;
  /** The last position of an append, `back` appends before the newest one, and not before `atLeast`. */
  headBefore(back: number, atLeast: number): number;
  readonly asks: readonly Ask[];
  /** A person asks to be left alone; the network shows that `lateMs` after. */
  optOut(recipientId: string, lateMs: number): void;
  /** Whose wish to be left alone the network showed already when the run began, and when they wrote it. */
  optedOutBefore(runId: string): ReadonlyMap<string, number>;
  /** When the event at a position was appended, by the network's clock. */
  appendedAt(position: number): number;
  /** The event as it was before any erasure. */
  asAppended(event: Recorded): Recorded;
  /** The id of the person it is about; undefined where it is about none. */
  about(position: number): string | undefined;
  /** Just before the next intent is appended, and after it was decided, `happening` takes place. */
  ambush(happening: (recipientId: string) => Promise<void>): void;
  /** The network as a process calls it. */
  watch(process: Process, caller: Caller): SocialNetwork;
}

/** What is seen of a process beside its calls. */
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
  /** Whose handle it is now. */
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
