import { faultFields } from "../platform/logger.ts";
import type { DispatchResult } from "../networks/network.ts";
import { createDoubts } from "./deduplication-window.ts";
import { ask, tellingResult, type Carriage, type FlightDeps, type Learn } from "./dispatch.ts";
import type { Item, LaneWindow } from "./outbox-window.ts";
import { createRecorder, UNRECORDED_MAX } from "./recorder.ts";
import type { Stoppage } from "./suspension.ts";
import type { Throttle } from "./rate-limiter.ts";

/** After a fault of ours, or of the log, an item is left alone for that long. */
const AFTER_FAULT_MS = 30_000;

/** The dispatches of a channel that are under way. Disposing it lets those in flight end and records their outcomes. */
export interface Flights extends AsyncDisposable {
  start(lane: LaneWindow, items: readonly Item[], carriage: Carriage): void;
  /** Ends what a restore has put in doubt: nothing is asked of the network, so its pace does not matter. */
  endRestored(lane: LaneWindow): void;
  /** Whether one more may start at `at`, ms since the epoch. */
  hasRoom(at: number): boolean;
  /** A batch under way makes no further request. */
  endBatches(): void;
}

interface FlightsDeps extends Omit<FlightDeps, "stopping"> {
  readonly throttle: Throttle;
  readonly stoppage: Stoppage;
  /** Something ended, so that something else may start. */
  readonly onLanding: () => void;
}

export function createFlights(deps: FlightsDeps): Flights {
  const { channel, clock, log, throttle, stoppage, onLanding } = deps;
  const recorder = createRecorder(deps);
  const doubts = createDoubts(deps);
  const stopping = new AbortController();
  const asker = { ...deps, stopping: stopping.signal };
  /** Those that ask the network, and all until they are recorded. */
  const asking = new Set<object>();
  const works = new Set<Promise<void>>();
  let unrecorded = 0;

  const learn: Learn = (results, items) => {
    const now = clock();
    const asked = results.filter(wasAsked);
    if (asked.length === 0) return [];
    const telling = tellingResult(asked);
    throttle.learn(telling, now);
    const pauseMs = Math.max(0, ...results.map(pauseOf));
    if (pauseMs > 0) throttle.pause(now + pauseMs);
    return stoppage.learn(telling, items);
  };

  const fly = async (lane: LaneWindow, items: readonly Item[], carriage: Carriage): Promise<void> => {
    const flight = { lane, items };
    asking.add(flight);
    try {
      const learnt = await ask(asker, lane, items, { carriage, learn }).finally(() => {
        // The network is free again; what it answered is recorded while it is asked for the next.
        asking.delete(flight);
        unrecorded += items.length;
        onLanding();
      });
      await recorder.record(lane, items, learnt).finally(() => stoppage.recorded(learnt));
    } catch (fault) {
      log.error("a dispatch could not be recorded", { channel: channel.name, ...faultFields(fault) });
      for (const item of items) lane.wait(item, clock() + AFTER_FAULT_MS);
    }
    await stoppage.tell();
    for (const item of items) item.inFlight = false;
    unrecorded -= items.length;
  };

  const launch = (lane: LaneWindow, items: readonly Item[], carriage: Carriage): void => {
    doubts.end(lane, items);
    for (const item of items) item.inFlight = true;
    const work = fly(lane, items, carriage).finally(() => {
      works.delete(work);
      onLanding();
    });
    works.add(work);
  };

  return {
    start(lane, wanted, wantedCarriage) {
      const { items, carriage } = throttle.isFailing()
        ? { items: wanted.slice(0, 1), carriage: "single" as const }
        : doubts.apart(lane, wanted, wantedCarriage);
      throttle.started(clock());
      launch(lane, items, carriage);
    },
    endRestored(lane) {
      const items = doubts.restored(lane);
      if (items.length > 0) launch(lane, items, "single");
    },
    hasRoom(at) {
      throttle.notice(clock());
      return unrecorded < UNRECORDED_MAX && asking.size < throttle.allowance(at);
    },
    endBatches: () => stopping.abort(),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all(works);
    },
  };
}

/** The rest of a batch that ended early says nothing of the network. */
function wasAsked(result: DispatchResult): boolean {
  return result.outcome !== "retryable" || result.unasked !== true;
}

function pauseOf(result: DispatchResult): number {
  return result.outcome === "delivered" ? (result.pauseMs ?? 0) : 0;
}
