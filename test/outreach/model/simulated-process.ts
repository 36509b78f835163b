import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../../events/event-types-and-codec.ts";
import type { SocialNetwork } from "../../../src/networks/network.ts";
import type { Sleep } from "../../../src/platform/clock-ids-and-timers.ts";
import type { Clockwork, Owner } from "./step-scheduler.ts";

/**
 * A fault that stops a process at one of its calls: before the call takes effect, or after that but before the process
 * sees the answer.
 */
export interface Fate {
  readonly what: "die" | "pause";
  /** Number of calls to let pass before the fault; 0 if the fault hits the next call. */
  readonly calls: number;
  readonly when: "before" | "behind";
}

/** A simulated process. It may die or pause at each of its calls to the outside, such as the log or the network. */
export interface Process {
  readonly store: EventStore<Event>;
  readonly sleep: Sleep;
  wrap(network: SocialNetwork, answerMs: number): SocialNetwork;
  /** Makes a call to the outside other than to the log and the network. Its answer takes `answerMs`. */
  call<T>(kind: string, effect: () => Promise<T>, answerMs?: number): Promise<T>;
  isDead(): boolean;
  isPaused(): boolean;
  /** Number of pauses so far. */
  pauses(): number;
  die(): void;
  pause(): void;
  resume(): void;
  meet(fate: Fate): void;
}

export interface ProcessDeps {
  readonly clockwork: Clockwork;
  readonly store: EventStore<Event>;
  /** Returns the position of the log's last event. */
  readonly head: () => number;
  /** Called for each fault that occurs, with the call that it hit, such as `append 3 behind`. */
  readonly onFate: (what: Fate["what"], point: string) => void;
}

export function createProcess({ clockwork, store, head, onFate }: ProcessDeps): Process {
  let dead = false;
  let paused = false;
  let pauses = 0;
  let fate: (Fate & { readonly atCall: number }) | undefined;
  let calls = 0;
  const callsOf = new Map<string, number>();
  const owner: Owner = { isRunning: () => !dead && !paused };

  const die = (): void => {
    dead = true;
    clockwork.forget(owner);
  };
  const pause = (): void => {
    paused = true;
    pauses += 1;
  };

  const turn = <T>(work: () => T | Promise<T>, wait: { at?: number; isDue?: () => boolean } = {}): Promise<T> =>
    dead ? NEVER : clockwork.turn({ owner, work, ...wait });

  /** Counts a call. The returned function applies a fault that is due, before or after the call. */
  const arrive = (kind: string): ((side: Fate["when"]) => void) => {
    const ordinal = (callsOf.get(kind) ?? 0) + 1;
    callsOf.set(kind, ordinal);
    calls += 1;
    const met = fate;
    if (met === undefined || calls <= met.atCall) return () => {};
    fate = undefined;
    return (side) => {
      if (side !== met.when || dead) return;
      onFate(met.what, `${kind} ${ordinal} ${side}`);
      if (met.what === "die") die();
      else pause();
    };
  };

  const call = async <T>(kind: string, effect: () => Promise<T>, answerMs = 0): Promise<T> => {
    const at = arrive(kind);
    at("before");
    const settled = await turn(async () => {
      const [result] = await Promise.allSettled([effect()]);
      // The fault strikes in the same step as the call's effect, so the process can do nothing in between.
      at("behind");
      return result;
    });
    await turn(() => {}, { at: clockwork.now() + answerMs });
    if (settled.status === "rejected") throw settled.reason;
    return settled.value;
  };

  const sleep: Sleep = async (ms, signal) => {
    const at = arrive("sleep");
    if (ms <= 0 || signal.aborted) return;
    const wakeAt = clockwork.now() + ms;
    at("before");
    await turn(() => at("behind"), { at: wakeAt, isDue: () => signal.aborted });
    await turn(() => {});
  };

  return {
    store: wrapStore({ store, head, call, turn }),
    wrap: (network, answerMs) => wrapNetwork(network, (kind, effect) => call(kind, effect, answerMs)),
    call,
    sleep,
    isDead: () => dead,
    isPaused: () => paused,
    pauses: () => pauses,
    die,
    pause,
    resume: () => {
      paused = false;
    },
    meet: (met) => {
      fate = { ...met, atCall: calls + met.calls };
    },
  };
}

const NEVER = new Promise<never>(() => {});

interface StoreDeps {
  readonly store: EventStore<Event>;
  readonly head: () => number;
  readonly call: Process["call"];
  readonly turn: (work: () => Promise<void>, wait: { at: number; isDue: () => boolean }) => Promise<void>;
}

function wrapStore({ store, head, call, turn }: StoreDeps): EventStore<Event> {
  return {
    ...store,
    append: (...args) => call("append", () => store.append(...args)),
    head: () => call("head", () => store.head()),
    streamHead: (stream) => call("streamHead", () => store.streamHead(stream)),
    leases: {
      ...store.leases,
      acquire: (...args) => call("acquire", () => store.leases.acquire(...args)),
      release: (lease) => call("release", () => store.leases.release(lease)),
    },
    async *read(query) {
      yield* await call("read", () => Array.fromAsync(store.read(query)));
    },
    /**
     * Delivers new events, as one step of the step scheduler that ends when they are folded. The real store delivers
     * them at a time of its choice.
     */
    async *subscribeBatches({ from }) {
      let next = from;
      for (;;) {
        const first = next;
        const [begun, folded] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
        const work = (): Promise<void> => {
          begun.resolve();
          return folded.promise;
        };
        void turn(work, { at: Infinity, isDue: () => head() >= first });
        await begun.promise;
        try {
          const batch: Recorded[] = await Array.fromAsync(store.read({ from: first }));
          next += batch.length;
          yield batch;
        } finally {
          folded.resolve();
        }
      }
    },
  };
}

type Call = <T>(kind: string, effect: () => Promise<T>) => Promise<T>;

function wrapNetwork(network: SocialNetwork, call: Call): SocialNetwork {
  return {
    network: network.network,
    me: (...args) => call("me", () => network.me(...args)),
    usersById: (...args) => call("usersById", () => network.usersById(...args)),
    usersByUsername: (...args) => call("usersByUsername", () => network.usersByUsername(...args)),
    followers: (...args) => call("followers", () => network.followers(...args)),
    listMembers: (...args) => call("listMembers", () => network.listMembers(...args)),
    searchAuthors: (...args) => call("searchAuthors", () => network.searchAuthors(...args)),
    sendDm: (...args) => call("sendDm", () => network.sendDm(...args)),
    conversation: (...args) => call("conversation", () => network.conversation(...args)),
    inbox: (...args) => call("inbox", () => network.inbox(...args)),
  };
}
