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

/** Short, so that an hour's wait is longer than a run may take. */
export const RUN_MAX_MS = 600_000;

/** One process of the service. */
export interface Instance {
  readonly process: Process;
  readonly runner: Runner;
  readonly projector: Projector;
  /** Moves the clock of its machine alone, unless the log has the same one. */
  moveClock(ms: number): void;
  /** So far its clock was moved. */
  aheadMs(): number;
  /** Looks after the log, as it does each second: what has no business with it any more ends. */
  look(): Promise<void>;
  /** Tells all others that it lives. */
  beat(): Promise<void>;
  /** An operator asks it to stop the run in progress, wherever that is made. */
  requestStop(metadata: EventMetadata): Promise<unknown>;
}

interface InstanceDeps extends Pick<ProcessDeps, "store" | "onFate"> {
  readonly keyring: Keyring;
  readonly makeId: MakeId;
  /** Whether another log is where it had its own. */
  readonly isReplaced: () => boolean;
}

export async function startInstance(house: House, deps: InstanceDeps): Promise<Instance> {
  const { clockwork, setting, witness, grant } = house;
  const { store, keyring, makeId, onFate, isReplaced } = deps;
  // What a process held of the keys before is gone with it.
  keyring.refresh();
  const isForgotten = (who: Recipient): boolean => keyring.isForgotten(who);
  const learning = createLearning(house);
  const refusing = learning.noting(witness.refusing(store));
  const head = (): number => (isReplaced() ? 0 : witness.head());
  const process = learning.watching(createProcess({ clockwork, store: refusing, head, onFate }));
  // A start reads the log in one go; what it may die of there is another test's matter.
  // The clockwork does not wait for snapshots, so that there are none.
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
        // A clock may be moved while the run is decided.
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

/** Two variants. */
export const TEMPLATE = parseTemplate("Hi {{name}}\n---\nHello {{name}}");

function pickRules({ dailyLimit, window, stopAfterFailures }: House["setting"]) {
  return { dailyLimit, window, stopAfterFailures };
}

/** What no two instances may differ in is another test's matter. */
const ALIKE = { url: "http://model", version: "1", started_at: "", configuration: "", settings: {} };

/** Events are lost with the whole log only. */
const NOT_LOST = new Error("the log lost what was read of it");

/** What an instance does every so often it does here when it is asked to: days pass, and nothing else would be done. */
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
    /** Resolves once it was done. */
    async ring(): Promise<void> {
      await asleep.promise;
      asleep = Promise.withResolvers();
      wake();
      await asleep.promise;
    },
  };
}

/** Whether a process had an answer of the log's clock, or about a lease, since that was moved: then it can know the time. */
function createLearning(house: House) {
  const grantedAt = new WeakMap<Lease, number>();
  let known = house.clockMoves.length;
  return {
    isTimeKnown: () => known === house.clockMoves.length,
    /** The log, as the process asks it for the time. */
    asking: (store: EventStore<Event>): EventStore<Event> => ({
      ...store,
      async now() {
        const moves = house.clockMoves.length;
        const now = await store.now();
        known = moves;
        return now;
      },
    }),
    /** The log itself. */
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
    /** What the process sees of it. */
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

/** More pages than any history has people and messages for. */
export const PAGES_MAX = 1_000;

/**
 * The network as it treats a token that it does not (or no longer) take, and what went wrong at it. Its times are given by
 * the clock of the process, as by the port.
 */
function guarded(house: House, projector: Projector, clock: Clock): SocialNetwork {
  const { network, grant, clockwork, troubles } = house;
  /** The accounts share a mailbox: each sees what another of them sent as its own, also when the log was lost. */
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
  /** What reads without end gets one here: the ledger finds that it had none. */
  const readPage = <Args extends unknown[], T>(ask: (token: string, ...args: Args) => Promise<T>) =>
    read(async (...args: [string, ...Args]) => {
      house.pagesRead += 1;
      // The service gives up a list that goes round in circles, as one that it cannot read.
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
      // A send that did not come about counts for two reads: it is not tried again.
      if (result.outcome === "unreachable") for (const what of ["failed", "failed"] as const) fail(what);
      if (result.outcome !== "rate_limited") return result;
      return { ...result, retryAt: result.retryAt + clock() - clockwork.now() };
    },
  };
}
