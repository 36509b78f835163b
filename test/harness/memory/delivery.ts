import { CHANNELS, type ChannelName } from "../../../events/channel.ts";
import type { OutcomeType } from "../../../events/dispatches.ts";
import { pendingOf } from "../../../projections/deliveries.ts";
import { makeId } from "../../../src/platform/clock.ts";
import type { Announce } from "../../../src/delivery/announce.ts";
import { createOutboxReader } from "../../../src/delivery/outbox-reader.ts";
import type { DispatchMetrics } from "../../../src/delivery/dispatch.ts";
import { createDelivery, type Delivery } from "../../../src/delivery/delivery.ts";
import { startDispatchers, type Dispatchers } from "../../../src/delivery/dispatcher.ts";
import { STREAMS, type NewEvent, type EventLog } from "../../../src/log/event-log.ts";
import type { Logger } from "../../../src/platform/logger.ts";
import type { Channel } from "../../../src/networks/network.ts";
import type { Secret } from "../../../src/platform/secret.ts";
import { startProjector, type Projector } from "../../../src/projector/projector.ts";
import { growingList } from "./fake-channel.ts";
import { fakeTime, type FakeTime } from "./fake-time.ts";
import { openMemoryLog, SILENT, type MemoryLog } from "./log.ts";
import { outcomesIn, type OutcomeOfOne } from "./outcomes.ts";

const LINK = { event: "click", domain: "go.example", short_code: "a", original_url: "https://example.com", bot: false };

/** A real log with its projections and dispatchers, on a clock of the test's. Disposing it is an orderly stop. */
export interface DeliveryHarness extends MemoryLog {
  readonly projector: Projector;
  readonly delivery: Delivery;
  readonly dispatchers: Dispatchers;
  readonly time: FakeTime;
  readonly announced: readonly Parameters<Announce>[];
  /** Resolves once so many announcements were made: they follow the event that they are about. */
  untilAnnounced(count: number): Promise<void>;
  readonly faults: readonly string[];
  /** Appends events in one append and answers the position of the first. */
  append(...newEvents: NewEvent[]): Promise<number>;
  clicks(count: number, channels?: ChannelName[]): Promise<number>;
  /** Resolves once nothing is pending any more; of these channels only, when some are given. */
  settled(...channels: ChannelName[]): Promise<void>;
  /** Moves the clock to `at`, ringing what is due on the way; nothing is left to do then before the next timer. */
  until(at: number): Promise<void>;
  /** What the outcome events of the types say, each dispatch for itself. */
  outcomes(...types: OutcomeType[]): Promise<OutcomeOfOne[]>;
}

export interface DeliveryOptions {
  /** Another log than one of its own. */
  readonly file?: string;
  readonly channels?: readonly Channel[];
  readonly time?: FakeTime;
  /** In [0, 1). */
  readonly random?: () => number;
  readonly digestAfterMs?: number;
  /** How many requests came so far. */
  readonly requests?: () => number;
  readonly metrics?: DispatchMetrics;
  /** Stands between the dispatchers and the log. */
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
  const logger: Logger = { ...SILENT, error: (message) => faults.push(message) };
  const announce: Announce = (...args) => Promise.resolve(announced.add(args));
  let appending = 0;
  /** Also one that began and ended since the last look: a fast one fits between two turns. */
  let hasAppended = false;
  const counting: EventLog = {
    ...eventLog,
    append: async (...args) => {
      appending++;
      hasAppended = true;
      try {
        return await eventLog.append(...args);
      } finally {
        appending--;
      }
    },
  };
  const isAppending = (): boolean => {
    const found = appending > 0 || hasAppended;
    hasAppended = false;
    return found;
  };
  const common = {
    eventLog: wrap(counting),
    projector,
    outboxReader: createOutboxReader(store),
    clock: time.clock,
    timer: time.timer,
    random,
    makeId,
    logger,
    announce,
  };
  const mark = (credential: Secret): string => `mark of ${credential.reveal()}`;
  const { digestAfterMs, requests = () => 0, metrics } = options;
  const chosen = { digestAfterMs, requests, metrics };
  const dispatchers = log.use(startDispatchers(channels, { ...common, mark, ...chosen }));
  const delivery = createDelivery(eventLog, projector, dispatchers.all);

  const append = async (...newEvents: NewEvent[]): Promise<number> => {
    const { first, last } = await eventLog.append(STREAMS.requests, newEvents, { caller: "test" });
    await projector.until(last);
    return first;
  };
  const house: DeliveryHarness = {
    ...log,
    projector,
    delivery,
    dispatchers,
    time,
    announced: announced.all,
    untilAnnounced: announced.until,
    faults,
    append,
    clicks(count, to = channels.map(({ name }) => name)) {
      const click: NewEvent = { type: "LinkClicked", data: { ...LINK, channels: to } };
      return append(...Array.from({ length: count }, () => click));
    },
    settled: (...wanted) => eventually(projector, () => pending(projector, wanted) === 0),
    async until(at) {
      for (;;) {
        await quiet(isAppending);
        const due = time.nextAt();
        if (due === undefined || due > at) break;
        time.ring();
      }
      time.advance(at - time.clock());
    },
    outcomes: async (...types) => outcomesIn(await log.events(...types)),
  };
  return house;
}

export const NOTIFY: NewEvent = {
  type: "NotificationRequested",
  data: { message: "disk is full", service: "backup", level: "error" },
};

/** Turns of the event loop without an append before everybody is taken to wait: a dispatcher's own way takes fewer. */
const QUIET_TURNS = 8;

async function quiet(isBusy: () => boolean): Promise<void> {
  for (let turns = 0; turns < QUIET_TURNS; turns = isBusy() ? 0 : turns + 1) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** Resolves as soon as `holds` does, looked at after each event. */
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
  return (channels.length === 0 ? CHANNELS : channels).reduce((sum, name) => sum + pendingOf(state[name]), 0);
}
