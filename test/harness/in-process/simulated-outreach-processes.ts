import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../../../events/event-types-and-codec.ts";
import { createEventLog, STREAMS, type NewEvent } from "../../../src/log/event-log.ts";
import type { SocialNetwork } from "../../../src/networks/network.ts";
import { X_PRICES } from "../../../src/networks/x/x-api.ts";
import type { OutreachContext } from "../../../src/outreach/run-context.ts";
import type { OutreachRules } from "../../../src/outreach/decide.ts";
import { createSuppressionHashes } from "../../../src/privacy/suppression-hashes.ts";
import { createOptOutCode } from "../../../src/template/short-link.ts";
import { parseTemplate } from "../../../src/template/template.ts";
import type { RunReport } from "../../../src/outreach/execute-run.ts";
import { createRunner, type Runner, type TriggerRequest } from "../../../src/outreach/start-run.ts";
import { openSource } from "../../../src/outreach/sources/open-sources.ts";
import { createStopWords, createWishReader } from "../../../src/outreach/detect-opt-out-replies.ts";
import { startProjector, type Projector } from "../../../src/projector/projector.ts";
import { createSimulatedNetwork, OWN, person, type SimulatedNetwork } from "./social-network.ts";
import { createVirtualTime, type VirtualTime } from "./self-advancing-clock.ts";
import { METADATA, openMemoryLog, SILENT, type LogEngine, type MemoryLog } from "./temporary-log.ts";
import { addedOf } from "./make-recipient-and-click-events.ts";

const START = "2026-03-01T08:00:00.000Z";

/** Master key for tests; not a secret. */
const MASTER_KEY = new Uint8Array(32).fill(7);

export const RULES: OutreachRules = {
  template: parseTemplate("Hi {{name}}"),
  requireConsent: true,
  gapDays: 30,
  dailyLimit: 100,
  stopAfterFailures: undefined,
  window: undefined,
  hashes: createSuppressionHashes(MASTER_KEY),
  findLinkKeys: (codes) => codes.map((code) => `key of ${code}`),
  isForgotten: () => false,
};

/**
 * A simulated process of the service, with its own runner and projector. After `die`, nothing that it does has an
 * effect.
 */
interface Instance {
  readonly context: OutreachContext;
  readonly runner: Runner;
  readonly projector: Projector;
  /** Texts that this process has announced to the operator. */
  readonly announced: string[];
  /** Ends the simulated process as a kill does: its calls never return and its timers never fire. */
  die(): void;
  /**
   * Ends the simulated process as a kill does: the next `calls` calls to the log or a network return, and the call
   * after them ends it. With `after`, that call still takes effect, but the process does not see its answer.
   */
  dieAt(calls: number, after: boolean): void;
  /** Resolves when the simulated process dies. */
  readonly dead: Promise<void>;
  /** Starts a run of the outreach agent and waits for its end. */
  run(options?: Partial<Omit<TriggerRequest, "metadata">>): Promise<RunReport>;
}

export interface OutreachHarness extends MemoryLog {
  readonly time: VirtualTime;
  readonly network: SimulatedNetwork;
  /** Starts another simulated process on the same log. */
  start(settings?: Partial<OutreachContext>): Promise<Instance>;
  append(newEvents: readonly NewEvent[]): Promise<void>;
  /** Imports people of the simulated network with their consent. */
  list(...ids: readonly string[]): Promise<void>;
}

/** Opens the same harness as {@link openOutreachOn}, on a log in a file. */
export const openOutreach = (...listed: readonly string[]): Promise<OutreachHarness> =>
  openOutreachOn("in a file", ...listed);

/**
 * Opens a test harness: several outreach agents on one log, with a simulated network and a clock that jumps. `listed`
 * are ids of people on the network who are imported with their consent.
 */
export async function openOutreachOn(engine: LogEngine, ...listed: readonly string[]): Promise<OutreachHarness> {
  const busy: (() => boolean)[] = [];
  const head = { written: 0 };
  let starting = 0;
  const time = createVirtualTime(START, () => starting > 0 || busy.some((isBusy) => isBusy()));
  const clock = (): number => time.now();
  let ids = 0;
  const makeId = (): string => `id-${(ids += 1)}`;
  const log = await openMemoryLog({ clock, makeId, engine });
  log.use(time);
  const network = createSimulatedNetwork(clock);
  const world: OutreachHarness = {
    ...log,
    time,
    network,
    async start(settings = {}) {
      starting += 1;
      try {
        const making = { time, network, store: log.store, head, makeId, settings };
        const { instance, isBusy, dispose } = await startInstance(making);
        busy.push(isBusy);
        log.use({ [Symbol.asyncDispose]: dispose });
        return instance;
      } finally {
        starting -= 1;
      }
    },
    async append(newEvents) {
      const stream = newEvents[0]?.type.startsWith("Account") === true ? STREAMS.account : STREAMS.outreach;
      const { last } = await log.eventLog.append(stream, newEvents, METADATA);
      head.written = Math.max(head.written, last);
    },
    list: (...ids) => world.append(ids.map((id) => addedOf({ id }))),
  };
  const authorized = { user: OWN, scopes: ["dm.write"], expires_at: "2027-01-01T00:00:00.000Z" };
  await world.append([{ type: "AccountAuthorized", data: authorized }]);
  for (const id of listed) network.people.set(id, person(id));
  if (listed.length > 0) await world.list(...listed);
  return world;
}

interface Making {
  readonly time: VirtualTime;
  readonly network: SimulatedNetwork;
  readonly store: EventStore<Event>;
  /** Newest position that any of the simulated processes or the test appended. */
  readonly head: { written: number };
  readonly makeId: () => string;
  readonly settings: Partial<OutreachContext>;
}

async function startInstance({ time, network, store, head, makeId, settings }: Making) {
  const life = createLife(store, head);
  // Names of the deleted keys, in place of a key store. A key store deletes keys when an instance reads the event of an
  // erasure.
  const deleted = new Set<string>();
  const erase = async ({ data: { keys } }: Recorded<"PersonForgotten">): Promise<void> => {
    for (const key of keys) deleted.add(key);
  };
  const projector = await startProjector(store, { erase });
  life.follow(projector);
  const announced: string[] = [];
  const context: OutreachContext = {
    eventLog: createEventLog(life.store, makeId),
    projector,
    network: life.wrap(network),
    credentials: { use: (call) => call("token"), send: (call) => call("token") },
    sources: [openSource("list"), openSource("last")],
    rules: { ...RULES, findLinkKeys: (codes) => RULES.findLinkKeys(codes).filter((key) => !deleted.has(key)) },
    prices: X_PRICES,
    readWish: createWishReader(["stop", "unsubscribe"], ["stop tracking"]),
    isTrackingOptOut: createStopWords(["stop tracking"]),
    newLinkSecret: undefined,
    reportEnd: () => Promise.resolve([]),
    newOptOutCode: () => createOptOutCode(makeId()),
    keptOptOuts: async () => [],
    random: () => 0.5,
    timezone: "UTC",
    runMaxMs: 180 * 60_000,
    settleMs: 60_000,
    spacingMs: 1_000,
    holder: makeId(),
    clock: () => time.now(),
    wallClock: () => time.now(),
    skewMs: () => 0,
    sleep: (ms, signal) => life.wait(() => time.sleep(ms, signal)),
    makeId,
    logger: SILENT,
    announce: async (text) => {
      announced.push(text);
    },
    ...settings,
  };
  const runner = createRunner(context);
  const instance: Instance = {
    context,
    runner,
    projector,
    announced,
    die: life.die,
    dieAt: life.dieAt,
    dead: life.dead,
    async run(options = {}) {
      const triggered = await runner.trigger({ dryRun: false, ...options, metadata: METADATA });
      if (triggered.kind !== "started") throw new Error(`no run was started: ${triggered.kind}`);
      const report = await triggered.done;
      if (report === undefined) throw new Error("the run died of a fault");
      return report;
    },
  };
  const dispose = async (): Promise<void> => {
    if (!life.isDead()) await runner[Symbol.asyncDispose]();
    await projector[Symbol.asyncDispose]();
  };
  return { instance, isBusy: life.isBusy, dispose };
}

/**
 * Counts the pending work of a simulated process, and can let the process die before, after or between its calls. The
 * process is also at work while its projections lag behind what others appended.
 */
function createLife(store: EventStore<Event>, head: Making["head"]) {
  const never = new Promise<never>(() => {});
  const death = Promise.withResolvers<void>();
  let dead = false;
  let callsLeft = Infinity;
  let lastTakesEffect = false;
  let underWay = 0;
  let projector: Projector | undefined;

  const die = (): void => {
    dead = true;
    death.resolve();
  };

  const call = async <T>(work: () => Promise<T>): Promise<T> => {
    if (dead) return never;
    callsLeft -= 1;
    const isLast = callsLeft < 0;
    if (isLast) die();
    if (isLast && !lastTakesEffect) return never;
    underWay += 1;
    try {
      const result = await work();
      return dead ? await never : result;
    } catch (fault) {
      if (dead) await never;
      throw fault;
    } finally {
      underWay -= 1;
    }
  };

  const lively: EventStore<Event> = {
    ...store,
    append: (stream, events, options) =>
      call(async () => {
        const appended = await store.append(stream, events, options);
        head.written = Math.max(head.written, appended.last);
        return appended;
      }),
    head: () => call(() => store.head()),
    streamHead: (stream) => call(() => store.streamHead(stream)),
    leases: {
      ...store.leases,
      acquire: (name, options) => call(() => store.leases.acquire(name, options)),
      release: (lease) => call(() => store.leases.release(lease)),
    },
  };

  const wrap = (network: SocialNetwork): SocialNetwork => ({
    network: network.network,
    me: (token) => call(() => network.me(token)),
    usersById: (token, ids) => call(() => network.usersById(token, ids)),
    usersByUsername: (token, names) => call(() => network.usersByUsername(token, names)),
    followers: (token, userId, page) => call(() => network.followers(token, userId, page)),
    listMembers: (token, listId, page) => call(() => network.listMembers(token, listId, page)),
    searchAuthors: (token, query, page) => call(() => network.searchAuthors(token, query, page)),
    sendDm: (token, recipientId, text) => call(() => network.sendDm(token, recipientId, text)),
    conversation: (token, recipientId, limit) => call(() => network.conversation(token, recipientId, limit)),
    inbox: (token, page) => call(() => network.inbox(token, page)),
  });

  return {
    store: lively,
    wrap,
    wait: async (sleep: () => Promise<void>): Promise<void> => {
      await (dead ? never : sleep());
      if (dead) await never;
    },
    die,
    dieAt: (calls: number, after: boolean): void => {
      callsLeft = calls;
      lastTakesEffect = after;
    },
    dead: death.promise,
    isDead: () => dead,
    isBusy: () => !dead && (underWay > 0 || (projector?.position ?? 0) < head.written),
    follow: (followed: Projector): void => {
      projector = followed;
    },
  };
}
