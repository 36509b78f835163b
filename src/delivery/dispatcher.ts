import { LANES, type ChannelName } from "../../events/channel.ts";
import { laneOf, owes } from "../../projections/deliveries.ts";
import { isoTime, type Clock } from "../clock.ts";
import { faultFields } from "../log.ts";
import type { DispatchResult } from "../networks/network.ts";
import type { Announce } from "./announce.ts";
import type { Circuit } from "./breaker.ts";
import { fly, type FlightDeps } from "./flight.ts";
import { openLane, type Item, type LaneWindow } from "./lane.ts";
import { createThrottle } from "./throttle.ts";
import { systemTimer, type Timer } from "./timer.ts";
import { createTurns } from "./turns.ts";

/** The longest single timer; also how soon a changed clock is noticed. */
const TIMER_MAX_MS = 30_000;

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
  const throttle = createThrottle();
  let cancelWake = (): void => {};

  const learn = (result: DispatchResult): void => {
    throttle.learn(result, clock());
    if (result.outcome === "refused" && result.channel) tellOperator(deps, result.detail);
  };

  const start = (lane: LaneWindow, item: Item): void => {
    item.inFlight = true;
    const flight = fly(deps, lane, item, learn)
      .catch((fault: unknown) => {
        deps.log.error("a dispatch could not be recorded", { channel: channel.name, ...faultFields(fault) });
        item.notBefore = clock() + TIMER_MAX_MS;
      })
      .finally(() => {
        item.inFlight = false;
        flights.delete(flight);
        turns.ask();
      });
    flights.add(flight);
  };

  /** Sets the timer for what becomes due while there is room for it; a landing flight is a turn by itself. */
  const wakeLater = (): void => {
    cancelWake();
    const dues = lanes.flatMap((lane) => lane.nextDue() ?? []);
    if (dues.length === 0) return;
    const now = clock();
    const due = Math.max(Math.min(...dues), throttle.blockedUntil());
    if (flights.size >= throttle.allowance(due)) return;
    cancelWake = timer(turns.ask, Math.min(TIMER_MAX_MS, Math.max(1, due - now)));
  };

  /** Fills the windows and starts what may start. */
  const turns = createTurns(async () => {
    try {
      for (const lane of lanes) await lane.fill();
      if (turns.stopped) return;
      launch(lanes, clock, start, () => flights.size < throttle.allowance(clock()));
      wakeLater();
    } catch (fault) {
      deps.log.error("a channel could not read what it owes", { channel: channel.name, ...faultFields(fault) });
      cancelWake();
      cancelWake = timer(turns.ask, TIMER_MAX_MS);
    }
  });

  const unlisten = projector.listen((event) => {
    if (owes(event, channel.name)) {
      for (const lane of lanes) if (lane.name === laneOf(event)) lane.notice();
      turns.ask();
    } else if (event.type === "ProjectionRebuilt" && event.data.projection === "deliveries") {
      for (const lane of lanes) lane.reopen();
      turns.ask();
    }
  });
  turns.ask();

  return {
    channel: channel.name,
    circuit: () => throttle.circuit(clock()),
    async [Symbol.asyncDispose]() {
      unlisten();
      await turns.stop();
      cancelWake();
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

/** Starts what is due, the direct lane first, as long as there is room. */
function launch(
  lanes: readonly LaneWindow[],
  clock: Clock,
  start: (lane: LaneWindow, item: Item) => void,
  hasRoom: () => boolean,
): void {
  for (const lane of lanes) {
    // A test tells how things are now: neither pace nor circuit holds it back, nor what waits before it.
    for (let item = lane.next(clock(), isTest); item !== undefined; item = lane.next(clock(), isTest)) {
      start(lane, item);
    }
  }
  for (const lane of lanes) {
    for (let item = lane.next(clock()); item !== undefined && hasRoom(); item = lane.next(clock())) start(lane, item);
  }
}

function isTest({ event }: Item): boolean {
  return event.type === "ChannelTestRequested";
}
