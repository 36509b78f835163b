import type { EventStore } from "eventstore-lite";
import type { Event } from "../../../events/catalog.ts";
import { findContact } from "../../../projections/contacts.ts";
import type { SocialNetwork } from "../../../src/networks/network.ts";
import type { Projector } from "../../../src/projector.ts";
import type { Accepted, SimulatedNetwork } from "../social-network.ts";
import type { Process } from "./process.ts";

/** A request to send, from the moment a process decided on it. */
export interface Ask {
  readonly recipientId: string;
  /** Position of the log's last event when the process made the call. */
  readonly head: number;
  /** By the network's clock, ms. */
  readonly at: number;
  /** By the process's clock and by the last event it knew of: what it takes for now, ms. */
  readonly ownTime: number;
  /** The process itself knew that this person wants nothing. */
  readonly knewSuppressed: boolean;
  /** When it reached the network; undefined if it never did. */
  took?: { readonly head: number; readonly accepted: Accepted | undefined };
}

/** Sees every append and every request to send, with what the log held at that moment. */
export interface Witness {
  readonly store: EventStore<Event>;
  head(): number;
  readonly asks: readonly Ask[];
  /** A person asks to be left alone; the network shows that `lateMs` after. */
  optOut(recipientId: string, lateMs: number): void;
  /** Whose wish to be left alone the network showed already when the run began, and when they wrote it. */
  optedOutBefore(runId: string): ReadonlyMap<string, number>;
  /** When the event at a position was appended, by the network's clock. */
  appendedAt(position: number): number;
  /** Just before the next intent is appended, and after it was decided, `happening` takes place. */
  ambush(happening: (recipientId: string) => Promise<void>): void;
  /** The network as a process calls it. */
  watch(process: Process, projector: Projector, network: SocialNetwork, answerMs: number): SocialNetwork;
}

export interface WitnessDeps {
  readonly store: EventStore<Event>;
  readonly now: () => number;
  readonly clock: () => number;
  readonly accepted: SimulatedNetwork["accepted"];
}

export function createWitness({ store, now, clock, accepted }: WitnessDeps): Witness {
  const times: number[] = [];
  const asks: Ask[] = [];
  const optOuts: { readonly recipientId: string; readonly writtenAt: number; readonly visibleAt: number }[] = [];
  const beforeRuns = new Map<string, ReadonlyMap<string, number>>();
  const ambushes: ((recipientId: string) => Promise<void>)[] = [];
  const begin = (runId: string): void => {
    const visible = optOuts.filter(({ visibleAt }) => visibleAt <= now());
    beforeRuns.set(runId, new Map(visible.map(({ recipientId, writtenAt }) => [recipientId, writtenAt])));
  };
  return {
    store: {
      ...store,
      async append(stream, events, options) {
        for (const { type, data } of events)
          if (type === "DirectMessageAttempted") await ambushes.shift()?.(data.recipient.id);
        const appended = await store.append(stream, events, options);
        for (const event of events) if (event.type === "RunStarted") begin(event.data.run_id);
        while (times.length < appended.last) times.push(now());
        return appended;
      },
    },
    head: () => times.length,
    asks,
    ambush: (happening) => {
      ambushes.push(happening);
    },
    optOut: (recipientId, lateMs) => {
      optOuts.push({ recipientId, writtenAt: now(), visibleAt: now() + lateMs });
    },
    optedOutBefore: (runId) => beforeRuns.get(runId) ?? new Map(),
    appendedAt: (position) => times[position - 1] ?? 0,
    watch: (process, projector, network, answerMs) => ({
      ...process.wrap(network, answerMs),
      sendDm(token, recipientId, text) {
        const lastKnown = projector.time === undefined ? 0 : Date.parse(projector.time);
        const ask: Ask = {
          recipientId,
          head: times.length,
          at: now(),
          ownTime: Math.max(clock(), lastKnown),
          knewSuppressed: findContact(projector.state("contacts"), { id: recipientId })?.suppressed === true,
        };
        asks.push(ask);
        const send = async () => {
          const before = accepted.length;
          const result = await network.sendDm(token, recipientId, text);
          ask.took = { head: times.length, accepted: accepted[before] };
          return result;
        };
        return process.call("sendDm", send, answerMs);
      },
    }),
  };
}
