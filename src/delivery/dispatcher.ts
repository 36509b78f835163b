import type { Recorded } from "../../events/catalog.ts";
import { backlogLaneOf, type Lane, lanesOf } from "../../events/channel.ts";
import { isSubscribed, laneOf, requestsDispatch } from "../../events/dispatches.ts";
import { findChannel, type LaneState, requestingTypes } from "../../projections/deliveries.ts";
import { type HeldLease, ROLES, type Roles } from "../log/lease.ts";
import type { Channel } from "../networks/network.ts";
import { createFaultReport } from "../platform/logger.ts";
import { breakerIn, createRateLimiter, createIntakePriority, type IntakePriority } from "./rate-limiter.ts";
import { type DispatchDeps, screen } from "./ask-network.ts";
import { createInFlight, type InFlight, type PlannedRequest } from "./in-flight.ts";
import {
  isTest,
  openOutboxWindow,
  type OutboxWindow,
  WINDOW_DISPATCHES_MAX,
  type Chunk,
  type OutboxReader,
} from "./outbox-window.ts";
import { createSuspension, type Suspension, type SuspensionDeps, rejectWhileSuspended } from "./suspension.ts";
import { createOutcomeBatching, type RecorderDeps, ROUND_DISPATCHES } from "./recorder.ts";
import { systemTimer, type Timer } from "../platform/clock.ts";
import { createCoalescingScheduler } from "../platform/coalescing-scheduler.ts";

/** The longest single timer; also how soon a changed clock is noticed. */
const TIMER_MAX_MS = 30_000;

/**
 * Pause between two turns while requests wait: long enough for many clicks, and too short for a reader of a chat to
 * notice.
 */
const BUSY_TURN_MS = 50;

/** Makes the dispatches of one channel that the log requests. */
type Dispatcher = ReturnType<typeof startDispatcher>;

interface DispatcherDeps extends Omit<DispatchDeps, "stopping">, SuspensionDeps, Pick<RecorderDeps, "batchOutcomes"> {
  /** Shared by all dispatchers of a log. */
  readonly outboxReader: OutboxReader;
  /** True if other instances may take the channel over. */
  readonly isShared: boolean;
  /** Lag after which clicks are dispatched in digests. Undefined: each click is always dispatched alone. */
  readonly digestAfterMs?: number | undefined;
  /** Returns how many requests have arrived so far, because delivery yields to them. Default: none. */
  readonly requests?: () => number;
  /** Wakes the dispatcher for a retry or the end of a pause; default: the runtime's. */
  readonly timer?: Timer;
}

/** Starts delivery. Disposing it waits for the attempts in flight and records their outcomes. */
function startDispatcher(deps: DispatcherDeps) {
  const { channel, projector, clock, timer = systemTimer } = deps;
  const lanes = openLanes(deps);
  const laneOfRequest = createLaneOfRequest(deps);
  const rateLimiter = createRateLimiter(breakerIn(findChannel(projector.state("deliveries"), channel.name), clock()));
  const suspension = createSuspension(deps);
  const intakePriority = createIntakePriority(deps.requests ?? (() => 0));
  const inFlight = createInFlight({ ...deps, rateLimiter, suspension, onCompleted: () => scheduler.ask() });
  let holdsClicks = false;
  const message = "pending dispatches could not be read";
  const report = createFaultReport(deps.logger.error, message, { channel: channel.name });
  let cancelWake = (): void => {};
  let cancelAsking: (() => void) | undefined;

  /** Schedules one turn for all clicks that arrive until then. A turn for each would delay their senders. */
  const askLater = (): void => {
    cancelAsking ??= timer(() => {
      cancelAsking = undefined;
      scheduler.ask();
    }, BUSY_TURN_MS);
  };

  /** Sets the timer for the next due dispatch if there is room for it. A completed request triggers a turn anyway. */
  const wakeLater = (): void => {
    cancelWake();
    const now = clock();
    const dues = sendable(lanes, holdsClicks || suspension.isSuspended()).flatMap((lane) => lane.nextDue(now) ?? []);
    // Infinity if nothing becomes due.
    const due = Math.max(Math.min(...dues), rateLimiter.blockedUntil());
    if (due === Infinity || !inFlight.hasRoom(due)) return;
    if (intakePriority.share(now) < 1) return askLater();
    cancelWake = timer(scheduler.ask, Math.min(TIMER_MAX_MS, Math.max(1, due - now)));
  };

  /** Fills the windows and starts the dispatches that may start. */
  const scheduler = createCoalescingScheduler(async () => {
    try {
      for (const lane of lanes) await lane.fill(clock());
      report.succeeded();
      if (scheduler.stopped) return;
      startDue({ ...deps, intakePriority, inFlight, suspension }, sendable(lanes, holdsClicks));
      wakeLater();
    } catch (fault) {
      report.failed(fault);
      cancelWake();
      cancelWake = timer(scheduler.ask, TIMER_MAX_MS);
    }
  });

  const unlisten = projector.listen((event) => {
    const lane = laneOfRequest(event);
    // A webhook may carry such an event too; it is then read again with the rest.
    if (outdatesLanes(event)) {
      deps.outboxReader.forget();
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
     * Clicks, and events of webhooks, now wait for the next start. Direct sends continue, because callers wait for
     * them.
     */
    holdClicks(): void {
      holdsClicks = true;
      inFlight.endBatches();
    },
    async [Symbol.asyncDispose]() {
      unlisten();
      // Disposed first, so that a batch makes no further request while the current turn ends.
      const completed = inFlight[Symbol.asyncDispose]();
      await scheduler.stop();
      cancelWake();
      cancelAsking?.();
      await completed;
    },
  };
}

function openLanes({ channel, projector, eventLog: { store }, outboxReader }: DispatcherDeps): readonly OutboxWindow[] {
  const { isInOrder = false } = channel;
  return lanesOf(channel.name).map((name) => {
    const state = (): LaneState => findChannel(projector.state("deliveries"), channel.name).lanes[name];
    const read = (from: number): Promise<Chunk> => {
      // Reads only up to the folded position: the types of later events are not known yet.
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

/** Finds the lane of the channel in which an event requests a dispatch; undefined for most. Called for every event. */
function createLaneOfRequest({ channel: { name }, projector }: DispatcherDeps): (event: Recorded) => Lane | undefined {
  const requested = (event: Recorded) => (requestsDispatch(event, name) ? laneOf(event) : undefined);
  if (backlogLaneOf(name) !== "events") return requested;
  return (event) => {
    const { subscriptions } = findChannel(projector.state("deliveries"), name).lanes.events;
    return isSubscribed(subscriptions, event) ? "events" : requested(event);
  };
}

/** True if the lanes must be read again: they hold data that was erased, or a rebuild corrected their state. */
function outdatesLanes(event: Recorded): boolean {
  if (event.type === "ProjectionRebuilt") return event.data.projection === "deliveries";
  return event.type === "PersonForgotten" || event.type === "PersonalDataExpired";
}

/** Returns the lanes that may send. While clicks are held or the channel is suspended, only the direct lane may. */
function sendable(lanes: readonly OutboxWindow[], holdsClicks: boolean): readonly OutboxWindow[] {
  return holdsClicks ? lanes.filter(({ name }) => name === "direct") : lanes;
}

/**
 * The dispatchers that work in this process. Disposing it stops all at once, so the slowest determines how long that
 * takes.
 */
export type Dispatchers = Awaited<ReturnType<typeof startDispatchers>>;

export interface DispatchersDeps extends Omit<DispatcherDeps, "channel" | "lease" | "batchOutcomes"> {
  readonly roles: Roles;
}

/** Short terms: no caller waits for a click's dispatch, and a stopped instance releases its channels at once. */
const TERMS = { ttlMs: 15_000, renewMs: 5_000 };

/** Starts the dispatchers. Across all instances, one dispatcher works on a channel at a time. */
export async function startDispatchers(channels: readonly Channel[], { roles, ...given }: DispatchersDeps) {
  const { eventLog, projector } = given;
  const common = { ...given, batchOutcomes: createOutcomeBatching(ROUND_DISPATCHES) };
  const working = new Set<Dispatcher>();
  let holdsClicks = false;

  const begin = async (channel: Channel, lease: HeldLease): Promise<AsyncDisposable> => {
    // The instance that had the channel before has recorded everything that it ever will.
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
    /** Calls {@link Dispatcher.holdClicks} on each dispatcher. */
    holdClicks(): void {
      holdsClicks = true;
      for (const dispatcher of working) dispatcher.holdClicks();
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map((role) => role[Symbol.asyncDispose]()));
    },
  };
}

interface StartDeps extends Pick<DispatchDeps, "channel" | "projector" | "clock"> {
  readonly digestAfterMs?: number | undefined;
  readonly intakePriority: IntakePriority;
  readonly inFlight: InFlight;
  readonly suspension: Suspension;
}

/** Starts due dispatches while there is room, the direct lane first. */
export function startDue(deps: StartDeps, lanes: readonly OutboxWindow[]): void {
  const { clock, inFlight, intakePriority, suspension } = deps;
  for (const lane of lanes) inFlight.endUnsent(lane);
  const direct = lanes.filter(({ name }) => name === "direct");
  for (const lane of direct) {
    // A test shows the current state, so neither the pace, the circuit nor waiting dispatches hold it back.
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
      const request = nextRequest(deps, lane);
      if (request.items.length === 0) break;
      if (lane.name !== "direct") intakePriority.took(request.items.length);
      inFlight.start(lane, request);
    }
  }
}

/**
 * Returns the next request of a lane. Clicks go together if the network takes batches or cannot keep up. Events of
 * webhooks go one by one.
 */
function nextRequest({ channel, clock, digestAfterMs, intakePriority }: StartDeps, lane: OutboxWindow): PlannedRequest {
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
