import { CLICK_CHANNELS, type ChannelName, type ClickChannel } from "../../../events/channel-and-lane-names.ts";
import type { OutcomeType } from "../../../events/dispatches-requested-by-events.ts";
import { findChannel, listChannels, pendingOf } from "../../../projections/deliveries.ts";
import { makeId, type Clock } from "../../../src/platform/clock-ids-and-timers.ts";
import type { DispatchMetrics, DispatchTracing } from "../../../src/delivery/attempt-dispatches.ts";
import { createDelivery, type Delivery } from "../../../src/delivery/wait-for-outcome.ts";
import { startDispatchers, type Dispatchers } from "../../../src/delivery/dispatcher.ts";
import { GATHERING_ITERATIONS_MAX } from "../../../src/delivery/outcome-recorder.ts";
import { STREAMS, type NewEvent, type EventLog, type Announce, type StateContext } from "../../../src/log/event-log.ts";
import { createRoles } from "../../../src/log/leases-and-roles.ts";
import type { Sleep } from "../../../src/platform/clock-ids-and-timers.ts";
import type { Logger, LogFields } from "../../../src/platform/logger.ts";
import type { Channel } from "../../../src/networks/network.ts";
import type { Secret } from "../../../src/platform/secret.ts";
import { startProjector, type Projector } from "../../../src/projector/projector.ts";
import { growingList } from "./fake-channel.ts";
import { fakeTime, type FakeTime } from "./fake-time.ts";
import { openMemoryLog, SILENT, toStateContext, type MemoryLog } from "./temporary-log.ts";
import { outcomesIn, type OutcomeOfOne } from "./dispatch-outcome-events.ts";
import { ALL_ROLES } from "./all-roles-held.ts";

const LINK = { event: "click", domain: "go.example", short_code: "a", original_url: "https://example.com", bot: false };

/**
 * Test harness with a real log, projections and dispatchers, on the test's clock. Disposing it stops them in an orderly
 * way.
 */
export interface DeliveryHarness extends MemoryLog {
  /** Context of the dispatchers, with their log as it is before `wrap` wraps it. */
  readonly context: StateContext;
  readonly projector: Projector;
  readonly delivery: Delivery;
  readonly dispatchers: Dispatchers;
  readonly time: FakeTime;
  readonly announced: readonly Parameters<Announce>[];
  /**
   * Resolves once the operator got `count` announcements. An announcement is made after the event that it is about, so
   * that event is in the log by then.
   */
  untilAnnounced(count: number): Promise<void>;
  readonly faults: readonly string[];
  /** Fields of the logger's line for each entry of `faults`. */
  readonly faultFields: readonly LogFields[];
  /** Appends these events in one append. Returns the position of the first. */
  append(...newEvents: NewEvent[]): Promise<number>;
  clicks(count: number, channels?: ClickChannel[]): Promise<number>;
  /** Resolves once no dispatch is pending in these channels; without arguments, in any. */
  settled(...channels: ChannelName[]): Promise<void>;
  /** Resolves once the dispatchers do nothing but wait for timers. */
  calm(): Promise<void>;
  /**
   * Moves the test's clock to `at` and fires the timers that are due until then. Resolves once the dispatchers only
   * wait for later timers.
   */
  until(at: number): Promise<void>;
  /** Returns the outcomes in events of these types, one per dispatch. */
  outcomes(...types: OutcomeType[]): Promise<OutcomeOfOne[]>;
}

export interface DeliveryOptions {
  /** File of an existing log to open instead of a new one. */
  readonly file?: string;
  readonly channels?: readonly Channel[];
  readonly time?: FakeTime;
  /** Clock of this instance; default: the log's. */
  readonly clock?: Clock;
  /** Random numbers in [0, 1) for the dispatchers; default: always 0.5. */
  readonly random?: () => number;
  readonly digestAfterMs?: number;
  /** Returns the number of requests that the service has received so far. Dispatchers pause when it has grown. */
  readonly requests?: () => number;
  readonly metrics?: DispatchMetrics;
  readonly tracing?: DispatchTracing;
  /** Name of this instance if several use the log; default: a single instance. */
  readonly instance?: string;
  /** Factor by which the leases of instances last longer or shorter than usual. */
  readonly leaseScale?: number;
  /** Wraps the log that the dispatchers use. */
  readonly wrap?: (eventLog: EventLog) => EventLog;
}

export async function openDelivery(given: DeliveryOptions = {}): Promise<DeliveryHarness> {
  const { file, channels = [], wrap = (eventLog) => eventLog, ...options } = given;
  const { time = fakeTime(), random = () => 0.5 } = options;
  const log = await openMemoryLog({ clock: time.clock, makeId, ...(file === undefined ? {} : { file }) });
  const { store, eventLog } = log;
  const projector = log.use(await startProjector(store));
  const announced = growingList<Parameters<Announce>>();
  const faults: string[] = [];
  const faultFields: LogFields[] = [];
  const logger: Logger = {
    ...SILENT,
    error(message, fields = {}) {
      faults.push(message);
      faultFields.push(fields);
    },
  };
  const announce: Announce = (...args) => Promise.resolve(announced.add(args));
  let atLog = 0;
  /**
   * True if work was done since the last check, even if none is pending now: a fast append may begin and end between
   * two turns of the event loop.
   */
  let wasBusy = false;
  const counted = async <T>(work: Promise<T>): Promise<T> => {
    atLog++;
    wasBusy = true;
    try {
      return await work;
    } finally {
      atLog--;
    }
  };
  const counting: EventLog = {
    append: (...args) => counted(eventLog.append(...args)),
    store: {
      ...store,
      // `read` is looked up at each call, because a test may replace it later.
      read: (...args) => store.read(...args),
      leases: { ...store.leases, acquire: (...args) => counted(store.leases.acquire(...args)) },
    },
  };
  const isBusy = (): boolean => {
    const found = atLog > 0 || wasBusy;
    wasBusy = false;
    return found;
  };
  const { instance: holder, leaseScale } = given;
  const instance = holder === undefined ? {} : { holder, sleep: sleepOn(time), elapsedMs: forward(time.clock) };
  const clocks = { clock: given.clock ?? time.clock, wallClock: time.clock, leaseScale };
  const parts = { random, makeId, logger, announce };
  const context = toStateContext({ eventLog: wrap(counting), projector }, { ...clocks, ...parts, ...instance });
  const hashCredential = (credential: Secret): string => `mark of ${credential.reveal()}`;
  const { digestAfterMs, requests = () => 0, metrics, tracing } = options;
  const chosen = { digestAfterMs, requests, metrics, tracing };
  const roles = holder === undefined ? ALL_ROLES : createRoles(context, false);
  const dispatching = { hashCredential, timer: time.timer, ...chosen, isShared: holder !== undefined };
  const dispatchers = log.use(await startDispatchers(context, channels, roles, dispatching));
  const delivery = createDelivery(context, channels);

  const append = async (...newEvents: NewEvent[]): Promise<number> => {
    const { first, last } = await eventLog.append(STREAMS.requests, newEvents, { caller: "test" });
    await projector.until(last);
    return first;
  };
  const house: DeliveryHarness = {
    ...log,
    context: { ...context, eventLog },
    projector,
    delivery,
    dispatchers,
    time,
    announced: announced.all,
    untilAnnounced: announced.until,
    faults,
    faultFields,
    append,
    clicks(count, to = CLICK_CHANNELS.filter((name) => channels.some((channel) => channel.name === name))) {
      const click: NewEvent = { type: "LinkClicked", data: { ...LINK, channels: to } };
      return append(...Array.from({ length: count }, () => click));
    },
    settled: (...wanted) => eventually(projector, () => pending(projector, wanted) === 0),
    async calm() {
      for (;;) {
        await quiet(isBusy);
        // Another instance may have appended events although no work is pending here, so the log's end is compared with
        // the projector's position.
        const { position } = await store.head();
        if (position <= projector.position) return;
        await projector.until(position);
      }
    },
    until: (at) => passUntil(at, time, [house]),
    outcomes: async (...types) => outcomesIn(await log.events(...types)),
  };
  return house;
}

/** Moves the clock as {@link DeliveryHarness.until} does, for all instances that share it. */
export async function passUntil(at: number, time: FakeTime, houses: readonly DeliveryHarness[]): Promise<void> {
  for (;;) {
    await calmOf(houses);
    const due = time.nextAt();
    if (due === undefined || due > at) break;
    time.ring();
  }
  time.advance(at - time.clock());
}

/**
 * Resolves once all instances do nothing but wait for timers. Repeats the check until nothing changes, because the work
 * of one instance may give work to another.
 */
async function calmOf(houses: readonly DeliveryHarness[]): Promise<void> {
  for (let seen = -1; ;) {
    for (const house of houses) await house.calm();
    const positions = houses.map(({ projector }) => projector.position);
    const position = Math.min(...positions);
    if (houses.length < 2 || (position === Math.max(...positions) && position === seen)) return;
    seen = position;
  }
}

/** Returns a clock that stands still while the test's clock goes back. */
function forward(clock: Clock): () => number {
  let elapsed = clock();
  return () => (elapsed = Math.max(elapsed, clock()));
}

/** Returns a sleep function whose waits end when the test's clock reaches their end. */
export function sleepOn({ timer }: FakeTime): Sleep {
  return (ms, signal) => {
    if (signal.aborted) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = timer(resolve, ms);
    signal.addEventListener("abort", () => {
      cancel();
      resolve();
    });
    return promise;
  };
}

export const NOTIFY: NewEvent = {
  type: "NotificationRequested",
  data: { message: "disk is full", service: "backup", level: "error" },
};

/**
 * Number of turns of the event loop without an append after which the test takes all dispatchers to be waiting. A
 * dispatcher never needs eight turns, and some more only to collect outcomes.
 */
const QUIET_TURNS = 8 + GATHERING_ITERATIONS_MAX;

async function quiet(isBusy: () => boolean): Promise<void> {
  for (let turns = 0; turns < QUIET_TURNS; turns = isBusy() ? 0 : turns + 1) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** Resolves as soon as `holds` is true; checks it after each event that the projector folds. */
export async function eventually(projector: Projector, holds: () => boolean): Promise<void> {
  if (holds()) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const unlisten = projector.listen(() => {
    if (holds()) resolve();
  });
  await promise;
  unlisten();
}

function pending(projector: Projector, channels: readonly ChannelName[]): number {
  const state = projector.state("deliveries");
  const wanted = channels.length === 0 ? listChannels(state) : channels;
  return wanted.reduce((sum, name) => sum + pendingOf(findChannel(state, name)), 0);
}
