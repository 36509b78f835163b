import { faultFields } from "../log.ts";
import type { DispatchResult } from "../networks/network.ts";
import { ask, tellingResult, type Carriage, type FlightDeps, type Learn } from "./flight.ts";
import type { Item, LaneWindow } from "./lane.ts";
import { createRecorder, UNRECORDED_MAX } from "./recorder.ts";
import type { Stoppage } from "./stoppage.ts";
import type { Throttle } from "./throttle.ts";

/** After a fault of ours, or of the log, an item is left alone for that long. */
const AFTER_FAULT_MS = 30_000;

/** The dispatches of a channel that are under way. Disposing it lets those in flight end and records their outcomes. */
export interface Flights extends AsyncDisposable {
  start(lane: LaneWindow, items: readonly Item[], carriage: Carriage): void;
  /** Whether one more may start at `at`, ms since the epoch. */
  hasRoom(at: number): boolean;
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
  const stopping = new AbortController();
  /** Those that ask the network, and all until they are recorded. */
  const asking = new Set<Promise<unknown>>();
  const works = new Set<Promise<void>>();
  let unrecorded = 0;

  const learn: Learn = (results, items) => {
    const now = clock();
    const telling = tellingResult(results);
    throttle.learn(telling, now);
    const pauseMs = Math.max(0, ...results.map(pauseOf));
    if (pauseMs > 0) throttle.pause(now + pauseMs);
    return stoppage.learn(telling, items);
  };

  return {
    start(lane, items, carriage) {
      for (const item of items) item.inFlight = true;
      throttle.started(clock());
      const question = ask({ ...deps, stopping: stopping.signal }, lane, items, { carriage, learn }).finally(() => {
        // The network is free again; what it answered is recorded while it is asked for the next.
        asking.delete(question);
        unrecorded += items.length;
        onLanding();
      });
      asking.add(question);
      const work = question
        .then((learnt) => recorder.record(lane, items, learnt))
        .catch((fault: unknown) => {
          log.error("a dispatch could not be recorded", { channel: channel.name, ...faultFields(fault) });
          for (const item of items) lane.wait(item, clock() + AFTER_FAULT_MS);
        })
        .then(stoppage.tell)
        .finally(() => {
          for (const item of items) item.inFlight = false;
          unrecorded -= items.length;
          works.delete(work);
          onLanding();
        });
      works.add(work);
    },
    hasRoom: (at) => unrecorded < UNRECORDED_MAX && asking.size < throttle.allowance(at),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all(works);
    },
  };
}

function pauseOf(result: DispatchResult): number {
  return result.outcome === "delivered" ? (result.pauseMs ?? 0) : 0;
}
