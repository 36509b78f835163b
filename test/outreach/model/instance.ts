import type { EventStore, Lease, Snapshots } from "eventstore-lite";
import type { Event } from "../../../events/event-types-and-codec.ts";
import { createTokens } from "../../../src/account/tokens.ts";
import type { OAuth } from "../../../src/account/oauth.ts";
import type { Recipient } from "../../../events/outreach.ts";
import type { Clock, MakeId } from "../../../src/platform/clock-ids-and-timers.ts";
import { fileClock, isSkewed, serverClock } from "../../../src/log/log-time-and-clock-skew.ts";
import { createEventLog, type EventMetadata } from "../../../src/log/event-log.ts";
import { joinInstances } from "../../../src/log/instance-heartbeats.ts";
import { watchLog } from "../../../src/log/watch-for-lost-or-replaced-log.ts";
import { SocialError, type SocialNetwork } from "../../../src/networks/network.ts";
import { X_PRICES } from "../../../src/networks/x/x-api.ts";
import { createRunner, type Runner } from "../../../src/outreach/start-run.ts";
import { requestStop } from "../../../src/outreach/run-end-and-stop-request.ts";
import { openSource } from "../../../src/outreach/sources/open-sources.ts";
import { createStopWords, createWishReader } from "../../../src/outreach/detect-opt-out-replies.ts";
import { findOptOutPage, optOut } from "../../../src/recipients/opt-out-and-untrack-by-page.ts";
import { createEraseHandler } from "../../../src/privacy/delete-erased-and-expired-keys.ts";
import type { Keyring } from "../../../src/privacy/keyring.ts";
import { createOptOutCode } from "../../../src/template/short-link.ts";
import { parseTemplate } from "../../../src/template/template.ts";
import { startProjector, type Projector } from "../../../src/projector/projector.ts";
import { RULES } from "../../harness/in-process/simulated-outreach-processes.ts";
import { GAP_DAYS } from "./campaign-rules.ts";
import type { House } from "./simulated-world.ts";
import { OWN } from "../../harness/in-process/social-network.ts";
import { createProcess, type Process, type ProcessDeps } from "./simulated-process.ts";
import { SILENT, toStateContext } from "../../harness/in-process/temporary-log.ts";

export const SETTLE_MS = 60_000;

/**
 * Maximum duration in ms that the simulated service allows an outreach run. It is so short that a run which waits for
 * an hour is ended by it.
 */
export const RUN_MAX_MS = 600_000;

/** A simulated process of the service. */
export interface Instance {
  readonly process: Process;
  readonly runner: Runner;
  readonly projector: Projector;
  /**
   * Moves the clock of this process's machine alone. If one process owns the log, there is only one clock, so it moves
   * for all processes.
   */
  moveClock(ms: number): void;
  /** Returns how far the clock of this process's machine was moved, in ms. */
  aheadMs(): number;
  /** Makes the check that the service repeats each second: if the log was replaced, the process ends. */
  look(): Promise<void>;
  /** Sends a heartbeat. */
  beat(): Promise<void>;
  /** Simulates that an operator asks this process to stop the run in progress, which another process may be making. */
  requestStop(metadata: EventMetadata): Promise<unknown>;
  /** Simulates that a person opens the page that a message to them links, and opts out. True once it is answered. */
  pressOptOut(id: string, metadata: EventMetadata): Promise<boolean>;
}

interface InstanceDeps extends Pick<ProcessDeps, "store" | "onFate"> {
  readonly keyring: Keyring;
  readonly makeId: MakeId;
  /** True if another log has replaced the log that this process opened. */
  readonly isReplaced: () => boolean;
}

export async function startInstance(house: House, deps: InstanceDeps): Promise<Instance> {
  const { clockwork, setting, witness, grant } = house;
  const { store, keyring, makeId, onFate, isReplaced } = deps;
  // A new process does not have the keys that the old one had in memory.
  keyring.refresh();
  const isForgotten = (who: Recipient): boolean => keyring.isForgotten(who);
  const learning = createLearning(house);
  const refusing = learning.noting(witness.refusing(store));
  const head = (): number => (isReplaced() ? 0 : witness.head());
  const process = learning.watching(createProcess({ clockwork, store: refusing, head, onFate }));
  // The projector uses the simulated process only for `subscribeBatches`, so a crash cannot interrupt its first read;
  // another test covers this. Snapshots are off, because the step scheduler does not wait for them.
  const followed = { ...store, subscribeBatches: process.store.subscribeBatches, snapshots: NO_SNAPSHOTS };
  const projector = await startProjector(followed, { logger: SILENT, erase: createEraseHandler(keyring) });
  let aheadMs = 0;
  const wallClock = (): number => house.machineClock() + aheadMs;
  const logClock = setting.isOwned ? fileClock(house.clock) : serverClock({ wallClock, elapsedMs: clockwork.now });
  await logClock.look(store);
  const eventLog = createEventLog(logClock.watched(process.store), makeId);
  const holder = makeId();
  const time = { clock: logClock.now, wallClock, elapsedMs: clockwork.now, sleep: process.sleep };
  const common = toStateContext({ eventLog, projector }, { ...time, makeId, holder });
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
    rules: {
      ...RULES,
      ...pickRules(setting),
      gapDays: GAP_DAYS,
      template: TEMPLATE,
      requireConsent: !setting.followers,
      isForgotten,
    },
    prices: X_PRICES,
    readWish: createWishReader(["stop"]),
    newLinkSecret: undefined,
    reportEnd: () => Promise.resolve([]),
    newOptOutCode: () => createOptOutCode(makeId()),
    keptOptOuts: keyring.keptOptOuts,
    isTrackingOptOut: createStopWords([]),
    timezone: house.timezone,
    runMaxMs: RUN_MAX_MS,
    settleMs: SETTLE_MS,
    spacingMs: setting.spacingMs,
  });
  const hearts = createAlarm();
  const joining = { ...common, eventLog: createEventLog(store, makeId), sleep: hearts.sleep };
  await joinInstances(joining, { id: holder, ...ALIKE });
  const looks = createAlarm();
  const watch = watchLog({
    ...common,
    eventLog: createEventLog(learning.asking(store), makeId),
    askKeys: async () => {},
    logClock,
    sleep: looks.sleep,
    reopen: () => Promise.reject(NOT_LOST),
  });
  const ended = watch.failed.then(() => process.die());
  return {
    process,
    runner: {
      ...runner,
      async trigger(request) {
        const wasClockWrong = isClockWrong();
        const triggered = await runner.trigger(request);
        const { current } = projector.state("run");
        const isOther = triggered.kind === "joined" && current?.campaign !== request.selection?.campaign;
        if (isOther && current?.run_id === triggered.run_id) house.wrongJoins.push(triggered.run_id);
        // A clock may be moved during the trigger's decision, so a start is wrong only if the clock was wrong both
        // before and after it.
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
    requestStop: (metadata) => requestStop(common, undefined, metadata),
    async pressOptOut(id, metadata) {
      const { optOuts } = projector.state("links");
      const [code] = [...optOuts].find(([, { recipient }]) => recipient.id === id) ?? [];
      const asked = { ...common, keyring, hashesOf: RULES.hashes, findLinkKeys: RULES.findLinkKeys };
      const page = code === undefined ? undefined : await findOptOutPage(asked, code);
      if (page !== undefined) await optOut(asked, page.id, metadata);
      return page !== undefined;
    },
  };
}

/** A template with two variants. */
export const TEMPLATE = parseTemplate(
  "Hi {{name}} {{optout}}\n---\nHello {{name}} {{optout}}",
  undefined,
  undefined,
  "https://reach.example/o",
);

function pickRules({ dailyLimit, window, stopAfterFailures }: House["setting"]) {
  return { dailyLimit, window, stopAfterFailures };
}

/** Settings that all processes report as the same, as they must. Another test covers differences. */
const ALIKE = { url: "http://model", version: "1", started_at: "", configuration: "", settings: {} };

/**
 * Error for a process whose log lost events that the process has read. It never occurs in these histories, because a
 * log is only lost as a whole.
 */
const NOT_LOST = new Error("the log lost what was read of it");

/**
 * Creates a timer whose periodic work runs only when the test calls `ring`. Days pass in a history, and work at each
 * interval would fill them.
 */
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
    /**
     * Lets the work that waits in `sleep` run once, such as a heartbeat of the instance. Resolves when that work calls
     * `sleep` again.
     */
    async ring(): Promise<void> {
      await asleep.promise;
      asleep = Promise.withResolvers();
      wake();
      await asleep.promise;
    },
  };
}

/**
 * Tracks if a process can know the log's time: the log has told it the time, in an answer or with a lease, since the
 * log's clock was last moved.
 */
function createLearning(house: House) {
  const grantedAt = new WeakMap<Lease, number>();
  let known = house.clockMoves.length;
  return {
    isTimeKnown: () => known === house.clockMoves.length,
    /** Wraps the log that a process asks for the time, to note each answer. */
    asking: (store: EventStore<Event>): EventStore<Event> => ({
      ...store,
      async now() {
        const moves = house.clockMoves.length;
        const now = await store.now();
        known = moves;
        return now;
      },
    }),
    /**
     * Wraps the log, to note at each grant of a lease how often the log's clock had been moved. A lease tells its
     * process the log's time, which stays right until the clock's next move.
     */
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
    /** Wraps the process. A granted lease tells it the time, like an answer of the log's clock. */
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

/** Maximum number of pages that a run reads, more than any history needs. */
export const PAGES_MAX = 1_000;

/**
 * Wraps the simulated network for one process: rejects invalid tokens, records failures in `troubles`, and gives times
 * by the process's clock, as a network's client does.
 */
function guarded(house: House, projector: Projector, clock: Clock): SocialNetwork {
  const { network, grant, clockwork, troubles } = house;
  /**
   * Returns messages as the linked account sees them. It counts messages of the first account as its own, because both
   * accounts share a mailbox.
   */
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
  /**
   * Wraps a read of a page so that it fails after PAGES_MAX pages. An endless read then ends, and the rule checks
   * report it.
   */
  const readPage = <Args extends unknown[], T>(ask: (token: string, ...args: Args) => Promise<T>) =>
    read(async (...args: [string, ...Args]) => {
      house.pagesRead += 1;
      // If the network's pages repeat, the service gives up reading the list. That counts as two failed calls, like a
      // read whose retry fails too.
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
      // A failed send is recorded as two failures, because it may end a run at once: the service does not retry it. A
      // failed read is retried first, so it ends a run only if the retry fails too.
      if (result.outcome === "unreachable") for (const what of ["failed", "failed"] as const) fail(what);
      if (result.outcome !== "rate_limited") return result;
      return { ...result, retryAt: result.retryAt + clock() - clockwork.now() };
    },
  };
}
