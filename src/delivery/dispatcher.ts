import type { Recorded } from "../../events/catalog.ts";
import { LANES, type ChannelName } from "../../events/channel.ts";
import type { DispatchMode } from "../../events/delivery.ts";
import { laneOf, requestsDispatch } from "../../events/dispatches.ts";
import { errorFields } from "../platform/logger.ts";
import type { OutboxReader } from "./outbox-reader.ts";
import type { Circuit } from "./circuit-breaker.ts";
import { createIntakePriority, type IntakePriority } from "./intake-priority.ts";
import { isTest, turnedAway, type DispatchDeps } from "./dispatch.ts";
import { createInFlight, type InFlight } from "./in-flight.ts";
import { openOutboxWindow, WINDOW_DISPATCHES_MAX, type PendingDispatch, type OutboxWindow } from "./outbox-window.ts";
import { createSuspension, type Suspension, type SuspensionDeps } from "./suspension.ts";
import { createRateLimiter } from "./rate-limiter.ts";
import { systemTimer, type Timer } from "../platform/timer.ts";
import { createCoalescingScheduler } from "./coalescing-scheduler.ts";

/** The longest single timer; also how soon a changed clock is noticed. */
const TIMER_MAX_MS = 30_000;

/** Between two turns while requests wait: long enough for many clicks, and nobody misses a click told that late. */
const BUSY_TURN_MS = 50;

/** Delivers what the log owes to one channel. */
export interface Dispatcher extends AsyncDisposable {
  readonly channel: ChannelName;
  circuit(): Circuit;
  /** From now on clicks wait for the next start; direct sends go on, for those who wait for them. */
  holdClicks(): void;
}

export interface DispatcherDeps extends Omit<DispatchDeps, "stopping">, SuspensionDeps {
  /** Shared by all dispatchers of a log. */
  readonly outboxReader: OutboxReader;
  /** Lag after which clicks are told in digests; undefined: each by itself, whatever the lag. */
  readonly digestAfterMs?: number | undefined;
  /** How many requests came so far: delivery gives way to them; default: none. */
  readonly requests?: () => number;
  /** Wakes the dispatcher for a retry or the end of a pause; default: the runtime's. */
  readonly timer?: Timer;
}

/** Starts delivering; disposing it lets the attempts in flight end and records their outcomes. */
export function startDispatcher(deps: DispatcherDeps): Dispatcher {
  const { channel, projector, clock, timer = systemTimer } = deps;
  const lanes = openLanes(deps);
  const rateLimiter = createRateLimiter();
  const suspension = createSuspension(deps);
  const intakePriority = createIntakePriority(deps.requests ?? (() => 0));
  const inFlight = createInFlight({ ...deps, rateLimiter, suspension, onCompleted: () => turns.ask() });
  let cancelWake = (): void => {};
  let holdsClicks = false;

  let cancelAsking: (() => void) | undefined;

  /** A turn for all that comes in meanwhile: one for each would take their senders' time. */
  const askLater = (): void => {
    cancelAsking ??= timer(() => {
      cancelAsking = undefined;
      turns.ask();
    }, BUSY_TURN_MS);
  };

  /** Sets the timer for what becomes due while there is room for it; a landing flight is a turn by itself. */
  const wakeLater = (): void => {
    cancelWake();
    const now = clock();
    const dues = sendable(lanes, holdsClicks || suspension.isSuspended()).flatMap((lane) => lane.nextDue(now) ?? []);
    if (dues.length === 0) return;
    const due = Math.max(Math.min(...dues), rateLimiter.blockedUntil());
    if (!inFlight.hasRoom(due)) return;
    if (intakePriority.share(now) < 1) return askLater();
    cancelWake = timer(turns.ask, Math.min(TIMER_MAX_MS, Math.max(1, due - now)));
  };

  /** Fills the windows and starts what may start. */
  const turns = createCoalescingScheduler(async () => {
    try {
      for (const lane of lanes) await lane.fill(clock());
      if (turns.stopped) return;
      launch({ ...deps, intakePriority }, sendable(lanes, holdsClicks), inFlight, suspension);
      wakeLater();
    } catch (fault) {
      deps.logger.error("a channel could not read what it owes", { channel: channel.name, ...errorFields(fault) });
      cancelWake();
      cancelWake = timer(turns.ask, TIMER_MAX_MS);
    }
  });

  const unlisten = projector.listen((event) => {
    if (requestsDispatch(event, channel.name)) {
      const lane = laneOf(event);
      for (const { name, notice } of lanes) if (name === lane) notice();
      if (lane === "direct" || !intakePriority.isBusy(clock())) turns.ask();
      else askLater();
    } else if (isErasure(event) || isOfDeliveries(event)) {
      deps.outboxReader.forget();
      for (const lane of lanes) lane.reopen();
      turns.ask();
    } else if (event.type === "ChannelResumed" && event.data.channel === channel.name) {
      turns.ask();
    }
  });
  void suspension.resumeIfChanged().finally(turns.ask);

  return {
    channel: channel.name,
    circuit: () => rateLimiter.circuit(clock()),
    holdClicks() {
      holdsClicks = true;
      inFlight.endBatches();
    },
    async [Symbol.asyncDispose]() {
      unlisten();
      // At once, so that a batch makes no further request while the turn under way ends.
      const landed = inFlight[Symbol.asyncDispose]();
      await turns.stop();
      cancelWake();
      cancelAsking?.();
      await landed;
    },
  };
}

function openLanes({ channel, projector, eventLog, outboxReader }: DispatcherDeps): readonly OutboxWindow[] {
  const log = { store: eventLog.store, outboxReader };
  const lanesOf = () => projector.state("deliveries")[channel.name].lanes;
  return LANES.map((lane) => openOutboxWindow(log, channel.name, lane, () => lanesOf()[lane]));
}

/** What the lanes hold was read while it was there. */
function isErasure({ type }: Recorded): boolean {
  return type === "PersonForgotten" || type === "PersonalDataExpired";
}

function isOfDeliveries(event: Recorded): boolean {
  return event.type === "ProjectionRebuilt" && event.data.projection === "deliveries";
}

/** The lanes from which something may be sent: while clicks are held, as for a channel that is suspended, not from theirs. */
function sendable(lanes: readonly OutboxWindow[], holdsClicks: boolean): readonly OutboxWindow[] {
  return holdsClicks ? lanes.filter(({ name }) => name === "direct") : lanes;
}

interface Launching extends DispatcherDeps {
  readonly intakePriority: IntakePriority;
}

/** Starts what is due, the direct lane first, as long as there is room. */
function launch(deps: Launching, lanes: readonly OutboxWindow[], inFlight: InFlight, suspension: Suspension): void {
  const { clock } = deps;
  for (const lane of lanes) inFlight.endRestored(lane);
  for (const lane of lanes) {
    if (lane.name === "clicks") continue;
    // A test tells how things are now: neither pace nor circuit holds it back, nor what waits before it.
    for (const item of lane.ready(clock(), Infinity, isTest)) inFlight.start(lane, [item], "single");
  }
  const isSuspended = suspension.isSuspended();
  for (const lane of lanes) {
    if (isSuspended) {
      if (lane.name === "clicks") continue;
      for (const item of lane.ready(clock(), Infinity)) {
        item.unrecorded ??= turnedAway(deps, lane, item, suspension.detail());
        inFlight.start(lane, [item], "single");
      }
      continue;
    }
    while (inFlight.hasRoom(clock())) {
      const { items, mode } = nextLoad(deps, lane);
      if (items.length === 0) break;
      if (lane.name === "clicks") deps.intakePriority.took(items.length);
      inFlight.start(lane, items, mode);
    }
  }
}

/** What goes next from a lane: clicks together where the network takes them so, or where it cannot keep up with each. */
function nextLoad(
  { channel, clock, digestAfterMs, intakePriority }: Launching,
  lane: OutboxWindow,
): { readonly items: readonly PendingDispatch[]; readonly mode: DispatchMode } {
  const now = clock();
  const single = (): readonly PendingDispatch[] => lane.ready(now, 1);
  if (lane.name === "direct") return { items: single(), mode: "single" };
  const share = intakePriority.share(now);
  if (share < 1) return { items: [], mode: "single" };
  if (channel.batch !== undefined) {
    return { items: lane.ready(now, Math.min(channel.batch.max, WINDOW_DISPATCHES_MAX, share)), mode: "batch" };
  }
  const [oldest] = single();
  const lagMs = oldest === undefined ? 0 : now - Date.parse(oldest.event.time);
  if (oldest === undefined || digestAfterMs === undefined || lagMs < digestAfterMs) {
    return { items: oldest === undefined ? [] : [oldest], mode: "single" };
  }
  const items = lane.ready(now, Math.min(WINDOW_DISPATCHES_MAX, share));
  return { items, mode: items.length > 1 ? "digest" : "single" };
}
