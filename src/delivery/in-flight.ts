import type { DispatchMode } from "../../events/delivery.ts";
import { errorFields } from "../platform/logger.ts";
import type { DispatchResult } from "../networks/network.ts";
import { createDeduplicationWindow } from "./deduplication-window.ts";
import { ask, tellingResult, type DispatchDeps, type Learn } from "./dispatch.ts";
import type { PendingDispatch, OutboxWindow } from "./outbox-window.ts";
import { createRecorder, UNRECORDED_MAX } from "./recorder.ts";
import type { Suspension } from "./suspension.ts";
import type { RateLimiter } from "./rate-limiter.ts";

/** After a fault of ours, or of the log, an item is left alone for that long. */
const AFTER_FAULT_MS = 30_000;

/** The dispatches of a channel that are under way. Disposing it lets those in flight end and records their outcomes. */
export interface InFlight extends AsyncDisposable {
  start(lane: OutboxWindow, items: readonly PendingDispatch[], mode: DispatchMode): void;
  /** Ends what a restore has put in doubt: nothing is asked of the network, so its pace does not matter. */
  endRestored(lane: OutboxWindow): void;
  /** Whether one more may start at `at`, ms since the epoch. */
  hasRoom(at: number): boolean;
  /** A batch under way makes no further request. */
  endBatches(): void;
}

interface FlightsDeps extends Omit<DispatchDeps, "stopping"> {
  readonly rateLimiter: RateLimiter;
  readonly suspension: Suspension;
  /** Something ended, so that something else may start. */
  readonly onCompleted: () => void;
}

export function createInFlight(deps: FlightsDeps): InFlight {
  const { channel, clock, logger, rateLimiter, suspension, onCompleted } = deps;
  const recorder = createRecorder(deps);
  const deduplicationWindow = createDeduplicationWindow(deps);
  const stopping = new AbortController();
  const asker = { ...deps, stopping: stopping.signal };
  /** Those that ask the network, and all until they are recorded. */
  const asking = new Set<object>();
  const backgroundTasks = new Set<Promise<void>>();
  let unrecorded = 0;

  const learn: Learn = (results, items) => {
    const now = clock();
    const asked = results.filter(wasAsked);
    if (asked.length === 0) return [];
    const telling = tellingResult(asked);
    rateLimiter.learn(telling, now);
    const pauseMs = Math.max(0, ...results.map(pauseOf));
    if (pauseMs > 0) rateLimiter.pause(now + pauseMs);
    return suspension.learn(telling, items);
  };

  const fly = async (lane: OutboxWindow, items: readonly PendingDispatch[], mode: DispatchMode): Promise<void> => {
    const flight = { lane, items };
    asking.add(flight);
    try {
      const learnt = await ask(asker, lane, items, { mode, learn }).finally(() => {
        // The network is free again; what it answered is recorded while it is asked for the next.
        asking.delete(flight);
        unrecorded += items.length;
        onCompleted();
      });
      await recorder.record(lane, items, learnt).finally(() => suspension.recorded(learnt));
    } catch (fault) {
      logger.error("a dispatch could not be recorded", { channel: channel.name, ...errorFields(fault) });
      for (const item of items) lane.wait(item, clock() + AFTER_FAULT_MS);
    }
    await suspension.tell();
    for (const item of items) item.inFlight = false;
    unrecorded -= items.length;
  };

  const launch = (lane: OutboxWindow, items: readonly PendingDispatch[], mode: DispatchMode): void => {
    deduplicationWindow.end(lane, items);
    for (const item of items) item.inFlight = true;
    const work = fly(lane, items, mode).finally(() => {
      backgroundTasks.delete(work);
      onCompleted();
    });
    backgroundTasks.add(work);
  };

  return {
    start(lane, wanted, wantedCarriage) {
      const { items, mode } = rateLimiter.isFailing()
        ? { items: wanted.slice(0, 1), mode: "single" as const }
        : deduplicationWindow.apart(lane, wanted, wantedCarriage);
      rateLimiter.started(clock());
      launch(lane, items, mode);
    },
    endRestored(lane) {
      const items = deduplicationWindow.restored(lane);
      if (items.length > 0) launch(lane, items, "single");
    },
    hasRoom(at) {
      rateLimiter.notice(clock());
      return unrecorded < UNRECORDED_MAX && asking.size < rateLimiter.allowance(at);
    },
    endBatches: () => stopping.abort(),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all(backgroundTasks);
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
