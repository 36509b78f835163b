import type { EventStore, Lease, Snapshots } from "eventstore-lite";
import type { Event } from "../../../events/catalog.ts";
import { createTokens } from "../../../src/account/tokens.ts";
import type { OAuth } from "../../../src/account/oauth.ts";
import type { Recipient } from "../../../events/outreach.ts";
import type { Clock, MakeId } from "../../../src/platform/clock.ts";
import { fileClock, isSkewed, serverClock } from "../../../src/log/log-clock.ts";
import { createEventLog, type EventMetadata } from "../../../src/log/event-log.ts";
import { joinInstances } from "../../../src/log/instance-heartbeats.ts";
import { watchLog } from "../../../src/log/log-watchdog.ts";
import { SocialError, type SocialNetwork } from "../../../src/networks/network.ts";
import { X_PRICES } from "../../../src/networks/x/x-api.ts";
import { createRunner, type Runner } from "../../../src/outreach/start-run.ts";
import { requestStop } from "../../../src/outreach/run-end.ts";
import { openSource } from "../../../src/outreach/sources/sources.ts";
import { createStopWords, createWishReader } from "../../../src/outreach/stop-words.ts";
import { createEraseHandler } from "../../../src/privacy/retention.ts";
import type { Keyring } from "../../../src/privacy/keyring.ts";
import { parseTemplate } from "../../../src/template/template.ts";
import { startProjector, type Projector } from "../../../src/projector/projector.ts";
import { RULES } from "../../harness/memory/outreach.ts";
import type { House } from "./house.ts";
import { OWN } from "../../harness/memory/social-network.ts";
import { createProcess, type Process, type ProcessDeps } from "./process.ts";
import { SILENT } from "../../harness/memory/log.ts";

export const SETTLE_MS = 60_000;

/** Short, so that one wait of an hour exceeds the longest run. */
export const RUN_MAX_MS = 600_000;

/** One process of the service. */
export interface Instance {
  readonly process: Process;
  readonly runner: Runner;
  readonly projector: Projector;
  /** Moves the clock of its machine alone, or all clocks if one process owns the log. */
  moveClock(ms: number): void;
  /** How far its machine's clock was moved. */
  aheadMs(): number;
  /** Does the check of the log that runs each second in the service; an instance whose log was replaced then ends. */
  look(): Promise<void>;
  /** Sends a heartbeat. */
  beat(): Promise<void>;
  /** An operator asks it to stop the run in progress, in any instance. */
  requestStop(metadata: EventMetadata): Promise<unknown>;
}

interface InstanceDeps extends Pick<ProcessDeps, "store" | "onFate"> {
  readonly keyring: Keyring;
  readonly makeId: MakeId;
  /** True if another log has replaced its own. */
  readonly isReplaced: () => boolean;
}

export async function startInstance(house: House, deps: InstanceDeps): Promise<Instance> {
  const { clockwork, setting, witness, grant } = house;
  const { store, keyring, makeId, onFate, isReplaced } = deps;
  // A new process has nothing of the old one's cached keys.
  keyring.refresh();
  const isForgotten = (who: Recipient): boolean => keyring.isForgotten(who);
  const learning = createLearning(house);
  const refusing = learning.noting(witness.refusing(store));
  const head = (): number => (isReplaced() ? 0 : witness.head());
  const process = learning.watching(createProcess({ clockwork, store: refusing, head, onFate }));
  // The projector's first read is a single step; another test covers crashes within it. The clockwork does not wait for
  // snapshots, so there are none.
  const followed = { ...store, subscribeBatches: process.store.subscribeBatches, snapshots: NO_SNAPSHOTS };
  const projector = await startProjector(followed, { logger: SILENT, erase: createEraseHandler(keyring) });
  let aheadMs = 0;
  const wallClock = (): number => house.machineClock() + aheadMs;
  const logClock = setting.isOwned ? fileClock(house.clock) : serverClock({ wallClock, elapsedMs: clockwork.now });
  await logClock.look(store);
  const eventLog = createEventLog(logClock.watched(process.store), makeId);
  const holder = makeId();
  const time = { clock: logClock.now, wallClock, elapsedMs: clockwork.now, sleep: process.sleep };
  const common = { ...time, eventLog, projector, holder, logger: SILENT, announce: async () => {} };
  const isTimeKnown = (): boolean => setting.isOwned || learning.isTimeKnown();
  const isClockWrong = (): boolean => {
    if (setting.isOwned || !isTimeKnown()) return false;
    const newest = projector.time === undefined ? 0 : Date.parse(projector.time);
    return isSkewed(wallClock() - Math.max(house.clock(), newest));
  };
  const oauth = {
    refresh: (token: string) => process.call("refresh", () => grant.oauth.refresh(token)),
  } as OAuth;
  const credentials = createTokens({ ...common, vault: grant.vault, oauth });
  const list = [openSource("again"), openSource("list"), openSource("inbound")];
  const others = setting.followers ? [openSource("followers"), openSource("last")] : [openSource("last")];
  const runner = createRunner({
    ...common,
    network: witness.watch(process, {
      projector,
      network: guarded(house, projector, logClock.now),
      wallClock,
      isTimeKnown,
    }),
    skewMs: () => logClock.skewMs(projector.time),
    credentials,
    sources: [...list, ...others],
    rules: { ...RULES, ...pickRules(setting), template: TEMPLATE, requireConsent: !setting.followers, isForgotten },
    prices: X_PRICES,
    readWish: createWishReader(["stop"]),
    newLinkSecret: undefined,
    isTrackingOptOut: createStopWords([]),
    random: () => 0.5,
    timezone: house.timezone,
    runMaxMs: RUN_MAX_MS,
    settleMs: SETTLE_MS,
    spacingMs: setting.spacingMs,
    makeId,
  });
  const hearts = createAlarm();
  const joining = { store, elapsedMs: clockwork.now, sleep: hearts.sleep, logger: SILENT };
  await joinInstances(joining, { id: holder, ...ALIKE });
  const looks = createAlarm();
  const watch = watchLog({
    ...common,
    store: learning.asking(store),
    askKeys: async () => {},
    logClock,
    sleep: looks.sleep,
    reopen: () => Promise.reject(NOT_LOST),
  });
  const ended = watch.failed.then(() => process.die());
  const deciding = { ...common, random: () => 0.5 };
  return {
    process,
    runner: {
      ...runner,
      async trigger(request) {
        const wasClockWrong = isClockWrong();
        const triggered = await runner.trigger(request);
        // A clock may be moved during the trigger's decision.
        if (triggered.kind === "started" && wasClockWrong && isClockWrong()) house.wrongStarts.push(triggered.run_id);
        return triggered;
      },
    },
    projector,
    moveClock(ms) {
      if (setting.isOwned) house.jump(ms);
      else aheadMs += ms;
    },
    aheadMs: () => aheadMs,
    look: () => Promise.race([looks.ring(), ended]),
    beat: hearts.ring,
    requestStop: (metadata) => requestStop(deciding, undefined, metadata),
  };
}

/** A template with two variants. */
export const TEMPLATE = parseTemplate("Hi {{name}}\n---\nHello {{name}}");

function pickRules({ dailyLimit, window, stopAfterFailures }: House["setting"]) {
  return { dailyLimit, window, stopAfterFailures };
}

/** Settings that all instances must share; another test covers differences. */
const ALIKE = { url: "http://model", version: "1", started_at: "", configuration: "", settings: {} };

/** Events can only be lost together with the whole log. */
const NOT_LOST = new Error("the log lost what was read of it");

/** Runs an instance's periodic work on request only: days pass in a history, and the work would fill them. */
function createAlarm() {
  let wake = (): void => {};
  let asleep = Promise.withResolvers<void>();
  return {
    sleep(): Promise<void> {
      const sleeping = Promise.withResolvers<void>();
      wake = sleeping.resolve;
      asleep.resolve();
      return sleeping.promise;
    },
    /** Resolves once the work is done. */
    async ring(): Promise<void> {
      await asleep.promise;
      asleep = Promise.withResolvers();
      wake();
      await asleep.promise;
    },
  };
}

/**
 * Tracks if a process heard from the log's clock, through an answer or a lease, since that clock was last moved. If so,
 * it can know the time.
 */
function createLearning(house: House) {
  const grantedAt = new WeakMap<Lease, number>();
  let known = house.clockMoves.length;
  return {
    isTimeKnown: () => known === house.clockMoves.length,
    /** Wraps the log for the process's reads of the time. */
    asking: (store: EventStore<Event>): EventStore<Event> => ({
      ...store,
      async now() {
        const moves = house.clockMoves.length;
        const now = await store.now();
        known = moves;
        return now;
      },
    }),
    /** Wraps the log itself; notes the clock moves at the time each lease is granted. */
    noting: (store: EventStore<Event>): EventStore<Event> => ({
      ...store,
      leases: {
        ...store.leases,
        async acquire(...args) {
          const lease = await store.leases.acquire(...args);
          if (lease !== undefined) grantedAt.set(lease, house.clockMoves.length);
          return lease;
        },
      },
    }),
    /** Wraps the process's view; counts a granted lease as an answer of the clock. */
    watching: (process: Process): Process => ({
      ...process,
      store: {
        ...process.store,
        leases: {
          ...process.store.leases,
          async acquire(...args) {
            const lease = await process.store.leases.acquire(...args);
            if (lease !== undefined) known = grantedAt.get(lease) ?? known;
            return lease;
          },
        },
      },
    }),
  };
}

export const NO_SNAPSHOTS: Snapshots = {
  load: async () => undefined,
  save: async () => {},
  list: async () => [],
  remove: async () => {},
};

/** More pages than any history needs for its people and messages. */
export const PAGES_MAX = 1_000;

/**
 * The network, except that it rejects invalid tokens, records failures in `troubles` and, like the port, gives times by
 * the process's clock.
 */
function guarded(house: House, projector: Projector, clock: Clock): SocialNetwork {
  const { network, grant, clockwork, troubles } = house;
  /** All accounts share a mailbox, so each sees messages of the others as its own, even if the log was lost. */
  const shared = <Message extends { readonly senderId: string }>(messages: readonly Message[]): Message[] => {
    const own = projector.state("account").user?.id ?? OWN.id;
    return messages.map((message) => (message.senderId === OWN.id ? { ...message, senderId: own } : message));
  };
  const fail = (what: "failed" | "stopped"): void => void troubles.push({ at: clockwork.now(), what });
  const read =
    <Args extends unknown[], T>(ask: (token: string, ...args: Args) => Promise<T>) =>
    async (token: string, ...args: Args): Promise<T> => {
      try {
        if (!grant.accepts(token)) throw new SocialError("unauthorized", "invalid token");
        return await ask(token, ...args);
      } catch (fault) {
        if (fault instanceof SocialError && fault.retryAt === undefined) fail("failed");
        throw fault;
      }
    };
  /** Fails after PAGES_MAX pages, so an endless read ends and the ledger reports it. */
  const readPage = <Args extends unknown[], T>(ask: (token: string, ...args: Args) => Promise<T>) =>
    read(async (...args: [string, ...Args]) => {
      house.pagesRead += 1;
      // The service stops reading a list whose pages repeat and counts it as unreadable.
      if (network.cursors !== "onward") for (const what of ["failed", "failed"] as const) fail(what);
      if (house.pagesRead > PAGES_MAX) throw new SocialError("rejected", "enough");
      return ask(...args);
    });
  return {
    network: network.network,
    me: read(network.me),
    usersById: read(network.usersById),
    usersByUsername: read(network.usersByUsername),
    followers: readPage(network.followers),
    listMembers: readPage(network.listMembers),
    searchAuthors: readPage(network.searchAuthors),
    conversation: read(async (...asked) => shared(await network.conversation(...asked))),
    inbox: readPage(async (...asked) => {
      const page = await network.inbox(...asked);
      return { ...page, messages: shared(page.messages) };
    }),
    async sendDm(token, recipientId, text) {
      if (!grant.accepts(token)) return { outcome: "unauthorized", rate: undefined };
      const result = await network.sendDm(token, recipientId, text);
      if (result.outcome === "stopped") fail("stopped");
      if (result.outcome === "not_permitted" || result.outcome === "recipient_closed") house.refused.add(recipientId);
      // A failed send counts for two reads, because it is not retried.
      if (result.outcome === "unreachable") for (const what of ["failed", "failed"] as const) fail(what);
      if (result.outcome !== "rate_limited") return result;
      return { ...result, retryAt: result.retryAt + clock() - clockwork.now() };
    },
  };
}
