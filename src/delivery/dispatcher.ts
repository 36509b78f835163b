import type { Recorded } from "../../events/event-types-and-codec.ts";
import { backlogLaneOf, type Lane, lanesOf } from "../../events/channel-and-lane-names.ts";
import { isSubscribed, laneOf, requestsDispatch } from "../../events/dispatches-requested-by-events.ts";
import { findChannel, type LaneState, requestingTypes } from "../../projections/deliveries.ts";
import { type HeldLease, ROLES, type Roles } from "../log/leases-and-roles.ts";
import type { Channel } from "../networks/network.ts";
import { createFaultReport } from "../platform/logger.ts";
import { breakerIn, createRateLimiter, createIntakePriority, type IntakePriority } from "./pace-and-circuit-breaker.ts";
import { type ChannelContext, type ChannelOptions, screen } from "./attempt-dispatches.ts";
import { createInFlight, type InFlight, type PlannedRequest } from "./in-flight.ts";
import {
  isTest,
  openOutboxWindow,
  type OutboxWindow,
  WINDOW_DISPATCHES_MAX,
  type Chunk,
  type OutboxReader,
  createOutboxReader,
} from "./outbox-window.ts";
import { createSuspension, type Suspension, rejectWhileSuspended } from "./suspend-channel-and-alert-operator.ts";
import { createOutcomeBatching, type OutcomeBatching, ROUND_DISPATCHES } from "./outcome-recorder.ts";
import { systemTimer, type Timer } from "../platform/clock-ids-and-timers.ts";
import { createCoalescingScheduler } from "../platform/coalescing-scheduler.ts";
import type { StateContext } from "../log/event-log.ts";

/**
 * Maximum time in ms that one timer of a dispatcher waits, and so the time within which the dispatcher notices a
 * changed clock.
 */
const TIMER_MAX_MS = 30_000;

/**
 * Pause between two turns of a dispatcher while HTTP requests wait, in ms: long enough to gather many clicks, and too
 * short for a reader of a chat to notice.
 */
const BUSY_TURN_MS = 50;

/** Dispatcher of one channel: sends the dispatches that the log requests. */
type Dispatcher = ReturnType<typeof startDispatcher>;

/** Options for all dispatchers of a log. */
export interface DispatchOptions extends ChannelOptions {
  /**
   * Age of the oldest waiting click from which on clicks are dispatched in digests, in ms. Undefined: each click is
   * always dispatched alone.
   */
  readonly digestAfterMs?: number | undefined;
  /**
   * Returns how many HTTP requests have arrived so far. When many arrive, delivery lets them go first. Default:
   * delivery never waits for requests.
   */
  readonly requests?: () => number;
  /** Timer that wakes a dispatcher for a retry or the end of a pause; default: the runtime's. */
  readonly timer?: Timer;
}

interface DispatcherContext extends ChannelContext, DispatchOptions {
  /** Reader of the log that all dispatchers share. */
  readonly outboxReader: OutboxReader;
  readonly batchOutcomes: OutcomeBatching;
}

/** Starts the dispatcher of one channel. Disposing it waits for the attempts in flight and records their outcomes. */
function startDispatcher(context: DispatcherContext) {
  const { channel, projector, clock, batchOutcomes, timer = systemTimer } = context;
  const lanes = openLanes(context);
  const laneOfRequest = createLaneOfRequest(context);
  const rateLimiter = createRateLimiter(breakerIn(findChannel(projector.state("deliveries"), channel.name), clock()));
  const suspension = createSuspension(context);
  const intakePriority = createIntakePriority(context.requests ?? (() => 0));
  const parts = { batchOutcomes, rateLimiter, suspension, onCompleted: () => scheduler.ask() };
  const inFlight = createInFlight(context, parts);
  let holdsClicks = false;
  const message = "pending dispatches could not be read";
  const report = createFaultReport(context.logger.error, message, { channel: channel.name });
  let cancelWake = (): void => {};
  let cancelAsking: (() => void) | undefined;

  /**
   * Schedules one turn of the dispatcher for all clicks that arrive until then. A turn for each click would slow down
   * the HTTP requests that post the clicks.
   */
  const askLater = (): void => {
    cancelAsking ??= timer(() => {
      cancelAsking = undefined;
      scheduler.ask();
    }, BUSY_TURN_MS);
  };

  /**
   * Sets the timer for the next due dispatch. If no further request may be in flight, no timer is needed, because the
   * end of a request starts a turn.
   */
  const wakeLater = (): void => {
    cancelWake();
    const now = clock();
    const dues = sendable(lanes, holdsClicks || suspension.isSuspended()).flatMap((lane) => lane.nextDue(now) ?? []);
    // The time at which the next dispatch may start; Infinity if none becomes due.
    const due = Math.max(Math.min(...dues), rateLimiter.blockedUntil());
    if (due === Infinity || !inFlight.hasRoom(due)) return;
    if (intakePriority.share(now) < 1) return askLater();
    cancelWake = timer(scheduler.ask, Math.min(TIMER_MAX_MS, Math.max(1, due - now)));
  };

  /**
   * Runs the dispatcher's turns. In each turn, every lane (queue of the channel) reads pending dispatches from the log
   * into memory, and the dispatches that may start are started.
   */
  const scheduler = createCoalescingScheduler(async () => {
    try {
      for (const lane of lanes) await lane.fill(clock());
      report.succeeded();
      if (scheduler.stopped) return;
      startDue({ ...context, intakePriority, inFlight, suspension }, sendable(lanes, holdsClicks));
      wakeLater();
    } catch (fault) {
      report.failed(fault);
      cancelWake();
      cancelWake = timer(scheduler.ask, TIMER_MAX_MS);
    }
  });

  const unlisten = projector.listen((event) => {
    const lane = laneOfRequest(event);
    // After an erasure or a rebuild, all lanes (queues of the channel) read their pending dispatches from the log
    // again. Each lane also finds this event then, if it requests a dispatch, so `notice` need not be called.
    if (outdatesLanes(event)) {
      context.outboxReader.forget();
      for (const outdated of lanes) outdated.reopen();
      scheduler.ask();
    } else if (lane !== undefined) {
      for (const { name, notice } of lanes) if (name === lane) notice();
      if (lane === "direct" || !intakePriority.isBusy(clock())) scheduler.ask();
      else askLater();
    } else if (event.type === "ChannelResumed" && event.data.channel === channel.name) scheduler.ask();
  });
  void suspension.resumeIfChanged().finally(scheduler.ask);

  return {
    /**
     * Stops sending clicks, and events of webhooks, until the next start. Direct sends continue, because callers wait
     * for them.
     */
    holdClicks(): void {
      holdsClicks = true;
      inFlight.endBatches();
    },
    async [Symbol.asyncDispose]() {
      unlisten();
      // Signals the requests in flight to end before it waits for the scheduler. Otherwise a batch could make further
      // requests while the scheduler finishes its present pass over the pending dispatches.
      const completed = inFlight[Symbol.asyncDispose]();
      await scheduler.stop();
      cancelWake();
      cancelAsking?.();
      await completed;
    },
  };
}

function openLanes({
  channel,
  projector,
  eventLog: { store },
  outboxReader,
}: DispatcherContext): readonly OutboxWindow[] {
  const { isInOrder = false } = channel;
  return lanesOf(channel.name).map((name) => {
    const state = (): LaneState => findChannel(projector.state("deliveries"), channel.name).lanes[name];
    const read = (from: number): Promise<Chunk> => {
      // A webhook may subscribe to other event types later. Events after the folded position are not read yet, because
      // it is not known if the webhook wants them.
      const bound = name === "events" ? { to: projector.position } : {};
      return outboxReader.read({ types: requestingTypes(name, state()), from, ...bound });
    };
    return openOutboxWindow({
      store,
      channel: channel.name,
      name,
      state,
      read,
      isInOrder: isInOrder && name === "events",
      screen: name === "events" ? (item) => screen(channel, item.event, item) : undefined,
    });
  });
}

/**
 * Creates a function that finds the lane (queue of a channel) in which an event requests a dispatch to the channel;
 * undefined for most events. It is called for every event.
 */
function createLaneOfRequest({
  channel: { name },
  projector,
}: DispatcherContext): (event: Recorded) => Lane | undefined {
  const requested = (event: Recorded) => (requestsDispatch(event, name) ? laneOf(event) : undefined);
  if (backlogLaneOf(name) !== "events") return requested;
  return (event) => {
    const { subscriptions } = findChannel(projector.state("deliveries"), name).lanes.events;
    return isSubscribed(subscriptions, event) ? "events" : requested(event);
  };
}

/**
 * True if the lanes (queues of the channel) must be read again after this event, because it erases personal data or
 * reports a rebuild of the deliveries projection.
 */
function outdatesLanes(event: Recorded): boolean {
  if (event.type === "ProjectionRebuilt") return event.data.projection === "deliveries";
  return event.type === "PersonForgotten" || event.type === "PersonalDataExpired";
}

/**
 * Returns the channel's lanes (queues) that may send. While clicks are held back or the channel is suspended, that is
 * only the direct lane.
 */
function sendable(lanes: readonly OutboxWindow[], holdsClicks: boolean): readonly OutboxWindow[] {
  return holdsClicks ? lanes.filter(({ name }) => name === "direct") : lanes;
}

/**
 * The dispatchers that work in this process. Disposing it stops all at once, so the slowest determines how long that
 * takes.
 */
export type Dispatchers = Awaited<ReturnType<typeof startDispatchers>>;

/**
 * Terms of the lease for a channel. They are short: no caller waits for a click's dispatch, and a stopped instance
 * releases its channels at once.
 */
const TERMS = { ttlMs: 15_000, renewMs: 5_000 };

/** Starts the dispatchers. Across all instances, one dispatcher works on a channel at a time. */
export async function startDispatchers(
  context: StateContext,
  channels: readonly Channel[],
  roles: Roles,
  options: DispatchOptions,
) {
  const { eventLog, projector } = context;
  const outboxReader = createOutboxReader(eventLog.store);
  const common = { ...context, ...options, outboxReader, batchOutcomes: createOutcomeBatching(ROUND_DISPATCHES) };
  const working = new Set<Dispatcher>();
  let holdsClicks = false;

  const begin = async (channel: Channel, lease: HeldLease): Promise<AsyncDisposable> => {
    // Waits until the projections hold the whole log. The channel's former dispatcher has recorded its last outcome by
    // now.
    await projector.until((await eventLog.store.head()).position);
    const dispatcher = startDispatcher({ ...common, channel, lease });
    if (holdsClicks) dispatcher.holdClicks();
    working.add(dispatcher);
    return {
      async [Symbol.asyncDispose]() {
        working.delete(dispatcher);
        await dispatcher[Symbol.asyncDispose]();
      },
    };
  };

  const started = await Promise.all(
    channels.map((channel) =>
      roles.start({ name: ROLES.dispatcher(channel.name), ...TERMS }, (lease) => begin(channel, lease)),
    ),
  );
  return {
    /**
     * Stops sending clicks, and events of webhooks, on every dispatcher until the next start. Direct sends continue.
     */
    holdClicks(): void {
      holdsClicks = true;
      for (const dispatcher of working) dispatcher.holdClicks();
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map((role) => role[Symbol.asyncDispose]()));
    },
  };
}

/** Context of one turn of a dispatcher: its channel, and the parts that decide if a dispatch may start now. */
interface StartContext extends ChannelContext {
  readonly digestAfterMs?: number | undefined;
  readonly intakePriority: IntakePriority;
  readonly inFlight: InFlight;
  readonly suspension: Suspension;
}

/**
 * Starts due dispatches while more requests may be in flight. Dispatches of the direct lane come first, because their
 * callers wait for an answer.
 */
export function startDue(context: StartContext, lanes: readonly OutboxWindow[]): void {
  const { clock, inFlight, intakePriority, suspension } = context;
  for (const lane of lanes) inFlight.endUnsent(lane);
  const direct = lanes.filter(({ name }) => name === "direct");
  for (const lane of direct) {
    // A test is to show the channel's present state, so neither the pace, the circuit breaker nor waiting dispatches
    // hold it back.
    for (const item of lane.ready(clock(), Infinity, isTest)) inFlight.start(lane, { items: [item], mode: "single" });
  }
  if (suspension.isSuspended()) {
    // Clicks of a suspended channel wait. Its direct sends are refused at once, because callers wait for them.
    for (const lane of direct) {
      for (const item of lane.ready(clock(), Infinity)) {
        item.unrecorded ??= rejectWhileSuspended(lane, item, suspension.detail());
        inFlight.start(lane, { items: [item], mode: "single" });
      }
    }
    return;
  }
  for (const lane of lanes) {
    while (inFlight.hasRoom(clock())) {
      const request = nextRequest(context, lane);
      if (request.items.length === 0) break;
      if (lane.name !== "direct") intakePriority.took(request.items.length);
      inFlight.start(lane, request);
    }
  }
}

/**
 * Returns the next request of a lane (queue of a channel). Several clicks share a request if the network accepts
 * batches, or as a digest if it cannot keep up. Events of webhooks are sent one by one.
 */
function nextRequest(
  { channel, clock, digestAfterMs, intakePriority }: StartContext,
  lane: OutboxWindow,
): PlannedRequest {
  const now = clock();
  if (lane.name === "direct") return { items: lane.ready(now, 1), mode: "single" };
  const share = intakePriority.share(now);
  if (share < 1) return { items: [], mode: "single" };
  if (channel.batch !== undefined) {
    return { items: lane.ready(now, Math.min(channel.batch.max, WINDOW_DISPATCHES_MAX, share)), mode: "batch" };
  }
  const single = lane.ready(now, 1);
  const [oldest] = single;
  const isAlone = oldest === undefined || lane.name === "events" || digestAfterMs === undefined;
  if (isAlone || now - Date.parse(oldest.event.time) < digestAfterMs) {
    return { items: single, mode: "single" };
  }
  const items = lane.ready(now, Math.min(WINDOW_DISPATCHES_MAX, share));
  return { items, mode: items.length > 1 ? "digest" : "single" };
}
