import { LANES, type ChannelName } from "../../events/channel.ts";
import { laneOf, owedChannels } from "../../projections/deliveries.ts";
import { isoTime } from "../clock.ts";
import { faultFields } from "../log.ts";
import type { DispatchResult } from "../networks/network.ts";
import type { Announce } from "./announce.ts";
import { afterFailure, circuitOf, CLOSED, type Breaker, type Circuit } from "./breaker.ts";
import { fly, type FlightDeps } from "./flight.ts";
import { openLane, type Item, type LaneWindow } from "./lane.ts";
import { afterSuccess, afterThrottle, INITIAL_PACE, type Pace } from "./pace.ts";
import { systemTimer, type Timer } from "./timer.ts";

/** The longest single timer; also how soon a changed clock is noticed. */
const TIMER_MAX_MS = 30_000;

/** HTTP status of a network that asks for less. */
const TOO_MANY_REQUESTS = 429;

/** Delivers what the log owes to one channel. */
export interface Dispatcher extends AsyncDisposable {
  readonly channel: ChannelName;
  circuit(): Circuit;
}

export interface DispatcherDeps extends FlightDeps {
  readonly announce: Announce;
  /** Wakes the dispatcher for a retry or the end of a pause; default: the runtime's. */
  readonly timer?: Timer;
}

/** Starts delivering; disposing it lets the attempts in flight end and records their outcomes. */
export function startDispatcher(deps: DispatcherDeps): Dispatcher {
  const { channel, projector, clock, timer = systemTimer } = deps;
  const lanes = LANES.map((lane) =>
    openLane(deps.journal.store, channel.name, lane, () => projector.state("deliveries")[channel.name].lanes[lane]),
  );
  const flights = new Set<Promise<void>>();
  let pace: Pace = INITIAL_PACE;
  let breaker: Breaker = CLOSED;
  let cancelWake = (): void => {};
  let stopped = false;
  /** The turn under way. */
  let turning: Promise<void> | undefined;
  let again = false;

  const learn = (result: DispatchResult): void => {
    const now = clock();
    if (result.outcome === "retryable") {
      if (result.status === TOO_MANY_REQUESTS) pace = afterThrottle(pace, now, result.retryAfterMs);
      else breaker = afterFailure(breaker, now);
    } else if (result.outcome === "in_doubt") {
      breaker = afterFailure(breaker, now);
    } else if (result.outcome !== "skipped") {
      pace = afterSuccess(pace);
      breaker = CLOSED;
      if (result.outcome === "refused" && result.channel) tellOperator(deps, result.detail);
    }
  };

  /** How many may be in flight: one probe while the circuit is half open, none while it is open or paused. */
  const allowance = (now: number): number => {
    const circuit = circuitOf(breaker, now);
    if (now < pace.pausedUntil || circuit === "open") return 0;
    return circuit === "half_open" ? 1 : pace.window;
  };

  const launchOne = (lane: LaneWindow, item: Item): void => {
    item.inFlight = true;
    const flight = fly(deps, lane, item, learn)
      .catch((fault: unknown) => {
        deps.log.error("a dispatch could not be recorded", { channel: channel.name, ...faultFields(fault) });
        item.notBefore = clock() + TIMER_MAX_MS;
      })
      .finally(() => {
        item.inFlight = false;
        flights.delete(flight);
        turn();
      });
    flights.add(flight);
  };

  const launch = (): void => {
    for (const lane of lanes) {
      // A test tells how things are now: neither pace nor circuit holds it back, nor what waits before it.
      for (let item = lane.next(clock(), isTest); item !== undefined; item = lane.next(clock(), isTest)) {
        launchOne(lane, item);
      }
    }
    for (const lane of lanes) {
      for (let item = lane.next(clock()); item !== undefined; item = lane.next(clock())) {
        if (flights.size >= allowance(clock())) return;
        launchOne(lane, item);
      }
    }
  };

  /** Sets the timer for what becomes due while there is room for it; a landing flight is a turn by itself. */
  const wakeLater = (): void => {
    cancelWake();
    const dues = lanes.flatMap((lane) => lane.nextDue() ?? []);
    const room = breaker.openUntil === 0 ? pace.window : 1;
    if (dues.length === 0 || flights.size >= room) return;
    const now = clock();
    const due = Math.max(Math.min(...dues), pace.pausedUntil, breaker.openUntil);
    cancelWake = timer(turn, Math.min(TIMER_MAX_MS, Math.max(1, due - now)));
  };

  /** Fills the windows and starts what may start; one turn at a time, and one more when asked meanwhile. */
  const turn = (): void => {
    again = true;
    turning ??= work();
  };

  const work = async (): Promise<void> => {
    try {
      while (again && !stopped) {
        again = false;
        for (const lane of lanes) await lane.fill();
        if (!stopped) launch();
      }
      if (!stopped) wakeLater();
    } catch (fault) {
      deps.log.error("a channel could not read what it owes", { channel: channel.name, ...faultFields(fault) });
      cancelWake();
      if (!stopped) cancelWake = timer(turn, TIMER_MAX_MS);
    } finally {
      turning = undefined;
    }
  };

  const unlisten = projector.listen((event) => {
    if (!owedChannels(event).includes(channel.name)) return;
    for (const lane of lanes) if (lane.name === laneOf(event)) lane.notice();
    turn();
  });
  turn();

  return {
    channel: channel.name,
    circuit: () => circuitOf(breaker, clock()),
    async [Symbol.asyncDispose]() {
      stopped = true;
      unlisten();
      cancelWake();
      await turning;
      await Promise.all(flights);
    },
  };
}

/** A refusal of the channel as a whole is told once for each reason and day, on another channel. */
function tellOperator({ channel, announce, clock, log }: DispatcherDeps, detail: string): void {
  const day = isoTime(clock()).slice(0, 10);
  announce(
    `${channel.network} refuses the ${channel.name} channel: ${detail}`,
    `refused/${channel.name}/${detail}/${day}`,
    channel.name,
  ).catch((fault: unknown) => log.error("an announcement failed", faultFields(fault)));
}

function isTest({ event }: Item): boolean {
  return event.type === "ChannelTestRequested";
}
