import type { Recorded } from "../../events/catalog.ts";
import { LANES, type ChannelName } from "../../events/channel.ts";
import { laneOf, owedChannels } from "../../projections/deliveries.ts";
import { isoTime, type Clock } from "../clock.ts";
import { OWN_CAUSE, STREAMS, type Journal } from "../journal.ts";
import { faultFields, type Logger } from "../log.ts";
import type { Channel, DispatchResult } from "../networks/network.ts";
import type { Projector } from "../projector.ts";
import type { Announce } from "./announce.ts";
import { decideOutcome, type Outcome } from "./attempt.ts";
import { afterFailure, circuitOf, CLOSED, type Breaker, type Circuit } from "./breaker.ts";
import { openLane, type Item, type LaneWindow } from "./lane.ts";
import { dispatchOf } from "./owed.ts";
import { afterSuccess, afterThrottle, INITIAL_PACE, type Pace } from "./pace.ts";

/** One attempt's total deadline; Meta recommends 1.5 s, chat services answer within a few seconds. */
const ATTEMPT_TIMEOUT_MS = 5_000;

/** A test or direct send found this old after a restart: whoever waited for it has gone. */
const TEST_EXPIRES_MS = 60_000;

/** The longest single timer; also how soon a changed clock is noticed. */
const TIMER_MAX_MS = 30_000;

/** HTTP status of a network that asks for less. */
const TOO_MANY_REQUESTS = 429;

/** Delivers what the log owes to one channel. */
export interface Dispatcher extends AsyncDisposable {
  readonly channel: ChannelName;
  circuit(): Circuit;
}

export interface DispatcherDeps {
  readonly channel: Channel;
  readonly journal: Journal;
  readonly projector: Projector;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
  readonly announce: Announce;
}

/** Starts delivering; disposing it lets the attempts in flight end and records their outcomes. */
export function startDispatcher(deps: DispatcherDeps): Dispatcher {
  const { channel, projector, clock } = deps;
  const lanes = LANES.map((lane) =>
    openLane(deps.journal.store, channel.name, lane, () => projector.state("deliveries")[channel.name].lanes[lane]),
  );
  const flights = new Set<Promise<void>>();
  let pace: Pace = INITIAL_PACE;
  let breaker: Breaker = CLOSED;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopped = false;
  let turning = false;
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

  const fly = (lane: LaneWindow, item: Item): void => {
    item.inFlight = true;
    const flight = attempt(deps, lane, item, learn)
      .catch((fault: unknown) => {
        // The log could not take the outcome: the item stays owed, and the next start takes it up again.
        deps.log.error("a dispatch could not be recorded", { channel: channel.name, ...faultFields(fault) });
        item.notBefore = clock() + TIMER_MAX_MS;
      })
      .finally(() => {
        item.inFlight = false;
        flights.delete(flight);
        void turn();
      });
    flights.add(flight);
  };

  const launch = (): void => {
    for (const lane of lanes) {
      for (let item = lane.next(clock()); item !== undefined; item = lane.next(clock())) {
        // A test tells how things are now, so neither pace nor circuit holds it back.
        if (item.event.type !== "ChannelTestRequested" && flights.size >= allowance(clock())) return;
        fly(lane, item);
      }
    }
  };

  const wakeLater = (): void => {
    clearTimeout(timer);
    const dues = lanes.flatMap((lane) => lane.nextDue() ?? []);
    if (dues.length === 0 || flights.size > 0) return;
    const now = clock();
    const open = breaker.openUntil > now ? breaker.openUntil : 0;
    const due = Math.max(Math.min(...dues), pace.pausedUntil, open);
    timer = setTimeout(() => void turn(), Math.min(TIMER_MAX_MS, Math.max(1, due - now)));
  };

  /** Fills the windows and starts what may start; one turn at a time, and one more when asked meanwhile. */
  const turn = async (): Promise<void> => {
    again = true;
    if (turning) return;
    turning = true;
    try {
      while (again && !stopped) {
        again = false;
        for (const lane of lanes) await lane.fill();
        if (!stopped) launch();
      }
      if (!stopped) wakeLater();
    } catch (fault) {
      deps.log.error("a channel could not read what it owes", { channel: channel.name, ...faultFields(fault) });
      if (!stopped) timer = setTimeout(() => void turn(), TIMER_MAX_MS);
    } finally {
      turning = false;
    }
  };

  const unlisten = projector.listen((event) => {
    if (!owedChannels(event).includes(channel.name)) return;
    for (const lane of lanes) if (lane.name === laneOf(event)) lane.notice();
    void turn();
  });
  void turn();

  return {
    channel: channel.name,
    circuit: () => circuitOf(breaker, clock()),
    async [Symbol.asyncDispose]() {
      stopped = true;
      unlisten();
      clearTimeout(timer);
      await Promise.all(flights);
    },
  };
}

/** One attempt: asks the network, then records the outcome; the item leaves its lane once that is durable. */
async function attempt(
  deps: DispatcherDeps,
  lane: LaneWindow,
  item: Item,
  learn: (result: DispatchResult) => void,
): Promise<void> {
  const { channel, journal, clock } = deps;
  const startedAt = clock();
  const outcome = isExpired(item.event, startedAt)
    ? expired(deps, lane, item)
    : await call(deps, lane, item, learn, startedAt);
  const appended = await journal.append(STREAMS.delivery(channel.name), [outcome.fact], OWN_CAUSE);
  await deps.projector.until(appended.last);
  if (outcome.final) lane.remove(item);
  item.attempts++;
  if (outcome.fact.type === "ChannelDispatchFailed") item.notBefore = Date.parse(outcome.fact.data.retry_at);
}

async function call(
  deps: DispatcherDeps,
  lane: LaneWindow,
  item: Item,
  learn: (result: DispatchResult) => void,
  startedAt: number,
): Promise<Outcome> {
  const dispatch = await dispatchOf(deps.journal.store, item.event);
  const result = await deps.channel.send(dispatch, { timeoutMs: ATTEMPT_TIMEOUT_MS, now: startedAt });
  learn(result);
  const now = deps.clock();
  return decideOutcome(
    {
      channel: deps.channel.name,
      lane: lane.name,
      event: item.event,
      number: item.attempts + 1,
      settledBelow: lane.settledBelow(item),
      latencyMs: now - startedAt,
      now,
      random: deps.random(),
    },
    result,
  );
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

function isExpired(event: Recorded, now: number): boolean {
  return event.type === "ChannelTestRequested" && now - Date.parse(event.time) > TEST_EXPIRES_MS;
}

function expired({ channel }: DispatcherDeps, lane: LaneWindow, item: Item): Outcome {
  const data = {
    event_id: item.event.id,
    owed: item.event.position,
    channel: channel.name,
    lane: lane.name,
    attempt: item.attempts + 1,
    settled_below: lane.settledBelow(item),
    reason: "expired",
  } as const;
  return { fact: { type: "ChannelDispatchSkipped", data }, final: true };
}
