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

/** Between two turns while requests wait: long enough for many clicks, and short enough that no reader of a chat notices. */
const BUSY_TURN_MS = 50;

/** Makes the dispatches that the log requests of one channel. */
type Dispatcher = ReturnType<typeof startDispatcher>;

interface DispatcherDeps extends Omit<DispatchDeps, "stopping">, SuspensionDeps, Pick<RecorderDeps, "batchOutcomes"> {
  /** Shared by all dispatchers of a log. */
  readonly outboxReader: OutboxReader;
  /** Other instances may take the channel over. */
  readonly isShared: boolean;
  /** Lag after which clicks are dispatched in digests; undefined: each by itself, whatever the lag. */
  readonly digestAfterMs?: number | undefined;
  /** How many requests came so far: delivery gives way to them; default: none. */
  readonly requests?: () => number;
  /** Wakes the dispatcher for a retry or the end of a pause; default: the runtime's. */
  readonly timer?: Timer;
}

/** Starts delivering; disposing it lets the attempts in flight end and records their outcomes. */
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

  /** A turn for all that comes in meanwhile: one for each would take their senders' time. */
  const askLater = (): void => {
    cancelAsking ??= timer(() => {
      cancelAsking = undefined;
      scheduler.ask();
    }, BUSY_TURN_MS);
  };

  /** Sets the timer for what becomes due while there is room for it; a completed request is a turn by itself. */
  const wakeLater = (): void => {
    cancelWake();
    const now = clock();
    const dues = sendable(lanes, holdsClicks || suspension.isSuspended()).flatMap((lane) => lane.nextDue(now) ?? []);
    // Infinity where nothing becomes due.
    const due = Math.max(Math.min(...dues), rateLimiter.blockedUntil());
    if (due === Infinity || !inFlight.hasRoom(due)) return;
    if (intakePriority.share(now) < 1) return askLater();
    cancelWake = timer(scheduler.ask, Math.min(TIMER_MAX_MS, Math.max(1, due - now)));
  };

  /** Fills the windows and starts what may start. */
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
    // For a webhook such an event may be one that it carries: it is read again with the rest.
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
    /** From now on clicks, and events of webhooks, wait for the next start; direct sends go on, for those who wait for them. */
    holdClicks(): void {
      holdsClicks = true;
      inFlight.endBatches();
    },
    async [Symbol.asyncDispose]() {
      unlisten();
      // At once, so that a batch makes no further request while the turn under way ends.
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
      // Not beyond what is folded: by which types the rest is chosen is not known yet.
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

/** The lane of the channel in which an event requests a dispatch; undefined for most. Asked for every event. */
function createLaneOfRequest({ channel: { name }, projector }: DispatcherDeps): (event: Recorded) => Lane | undefined {
  const requested = (event: Recorded) => (requestsDispatch(event, name) ? laneOf(event) : undefined);
  if (backlogLaneOf(name) !== "events") return requested;
  return (event) => {
    const { subscriptions } = findChannel(projector.state("deliveries"), name).lanes.events;
    return isSubscribed(subscriptions, event) ? "events" : requested(event);
  };
}

/** True if the lanes must be read again: they hold data from before an erasure, or a rebuild corrected their state. */
function outdatesLanes(event: Recorded): boolean {
  if (event.type === "ProjectionRebuilt") return event.data.projection === "deliveries";
  return event.type === "PersonForgotten" || event.type === "PersonalDataExpired";
}

/** The lanes from which something may be sent: while clicks are held, as for a channel that is suspended, not from theirs. */
function sendable(lanes: readonly OutboxWindow[], holdsClicks: boolean): readonly OutboxWindow[] {
  return holdsClicks ? lanes.filter(({ name }) => name === "direct") : lanes;
}

/** The dispatchers that work here. Disposing it stops them at once: the time to stop in is that of the slowest. */
export type Dispatchers = Awaited<ReturnType<typeof startDispatchers>>;

export interface DispatchersDeps extends Omit<DispatcherDeps, "channel" | "lease" | "batchOutcomes"> {
  readonly roles: Roles;
}

/** No caller that posts a click waits for its dispatch, and a stopped instance gives its channels up at once. */
const TERMS = { ttlMs: 15_000, renewMs: 5_000 };

/** One dispatcher a channel works at a time, over all instances. */
export async function startDispatchers(channels: readonly Channel[], { roles, ...given }: DispatchersDeps) {
  const { eventLog, projector } = given;
  const common = { ...given, batchOutcomes: createOutcomeBatching(ROUND_DISPATCHES) };
  const working = new Set<Dispatcher>();
  let holdsClicks = false;

  const begin = async (channel: Channel, lease: HeldLease): Promise<AsyncDisposable> => {
    // The instance that had the channel before has recorded all that it ever will.
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
    /** {@link Dispatcher.holdClicks} of each. */
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

/** Starts what is due, the direct lane first, as long as there is room. */
export function startDue(deps: StartDeps, lanes: readonly OutboxWindow[]): void {
  const { clock, inFlight, intakePriority, suspension } = deps;
  for (const lane of lanes) inFlight.endUnsent(lane);
  const direct = lanes.filter(({ name }) => name === "direct");
  for (const lane of direct) {
    // A test shows how things are now: neither pace nor circuit holds it back, nor what waits before it.
    for (const item of lane.ready(clock(), Infinity, isTest)) inFlight.start(lane, { items: [item], mode: "single" });
  }
  if (suspension.isSuspended()) {
    // Its clicks wait; callers wait for its direct sends.
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
 * What goes next from a lane: clicks together where the network takes them so, or where it cannot keep up with each.
 * Events of webhooks go one by one.
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
