import { backlogLaneOf, type Lane } from "../../events/channel.ts";
import { sourcesOf } from "../../events/sources.ts";
import { type NewEvent, SERVICE_METADATA, STREAMS } from "../log/event-log.ts";
import { nextTurn } from "../platform/time-slices.ts";
import { errorFields } from "../platform/logger.ts";
import { ask, describeCauses, type DispatchDeps, type Learn, weightiestResult } from "./ask-network.ts";
import { type OutboxWindow, type PendingDispatch, WINDOW_DISPATCHES_MAX } from "./outbox-window.ts";
import { type RateLimiter, breakerIn, type CircuitBreaker } from "./rate-limiter.ts";
import { createRecorder, type RecorderDeps, UNRECORDED_MAX } from "./recorder.ts";
import type { Suspension } from "./suspension.ts";
import { isoTime } from "../platform/clock.ts";
import type { DispatchMode } from "../../events/delivery.ts";
import { findChannel, isClaimedByOther, isOfBefore } from "../../projections/deliveries.ts";

/** After a fault of ours, or of the log, an item is left alone for that long. */
const AFTER_FAULT_MS = 30_000;

/** The dispatches of a channel that are under way. Disposing it lets those in flight end and records their outcomes. */
export type InFlight = ReturnType<typeof createInFlight>;

interface InFlightDeps extends Omit<DispatchDeps, "stopping">, Pick<RecorderDeps, "batchOutcomes"> {
  /** Other instances may take the channel over: they must know what they would double. */
  readonly isShared: boolean;
  readonly rateLimiter: RateLimiter;
  readonly suspension: Suspension;
  /** Something ended, so that something else may start. */
  readonly onCompleted: () => void;
}

export function createInFlight(deps: InFlightDeps) {
  const { channel, clock, logger, rateLimiter, suspension, onCompleted } = deps;
  const claim = createClaims(deps);
  const record = createRecorder(deps);
  const deduplicationWindow = createDeduplicationWindow(deps);
  const { learn, recorded } = createLearning(deps);
  const stopping = new AbortController();
  const askDeps = { ...deps, stopping: stopping.signal };
  /** Requests that wait for the network's answer. */
  let asking = 0;
  /** Dispatches that the network answered and the log does not have yet. */
  let unrecorded = 0;
  const underWay = new Set<Promise<void>>();

  const askAndRecord = async (lane: OutboxWindow, { items, mode }: PlannedRequest): Promise<void> => {
    try {
      let learnt: readonly NewEvent[];
      asking++;
      try {
        const claimed = claim(lane, items);
        if (claimed !== undefined) await claimed;
        learnt = await ask(askDeps, lane, items, { mode, learn });
      } finally {
        // The network is free again; what it answered is recorded while it is asked for the next.
        asking--;
        unrecorded += items.length;
        onCompleted();
      }
      try {
        await record(lane, items, learnt);
      } finally {
        recorded(learnt);
      }
    } catch (fault) {
      const about = { channel: channel.name, ...describeCauses(items), ...errorFields(fault) };
      logger.error("a dispatch could not be recorded", about);
      for (const item of items) lane.wait(item, clock() + AFTER_FAULT_MS);
    }
    if (suspension.isSuspended()) await suspension.announce();
    for (const item of items) item.inFlight = false;
    unrecorded -= items.length;
  };

  const launch = (lane: OutboxWindow, request: PlannedRequest): void => {
    deduplicationWindow.markInDoubt(lane, request.items);
    for (const item of request.items) item.inFlight = true;
    const work = askAndRecord(lane, request).then(() => {
      underWay.delete(work);
      onCompleted();
    });
    underWay.add(work);
  };

  return {
    /** Starts what is wanted, or the part of it that may go together now. */
    start(lane: OutboxWindow, wanted: PlannedRequest): void {
      const request: PlannedRequest = rateLimiter.isFailing()
        ? { items: wanted.items.slice(0, 1), mode: "single" }
        : deduplicationWindow.splitUncertain(lane, wanted);
      rateLimiter.started(clock());
      launch(lane, request);
    },
    /** Ends what a restore or a takeover has put in doubt, and what is screened: no request is made, so the pace does not matter. */
    endUnsent(lane: OutboxWindow): void {
      for (const items of [deduplicationWindow.interrupted(lane), lane.screened(clock())])
        if (items.length > 0) launch(lane, { items, mode: "single" });
    },
    /** Whether one more may start at `at`, ms since the epoch. */
    hasRoom(at: number): boolean {
      rateLimiter.notice(clock());
      return unrecorded < UNRECORDED_MAX && asking < rateLimiter.allowance(at);
    },
    /** A batch under way makes no further request. */
    endBatches: (): void => stopping.abort(),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all(underWay);
    },
  };
}

/**
 * Says durably which dispatches are about to be sent, in one append for all that are so while another is under way. Claims
 * nothing where no other instance takes over, or where the network recognises each repeat.
 */
function createClaims({ channel, lease, eventLog, isShared }: InFlightDeps) {
  let gathering: { readonly positions: Map<Lane, number[]>; readonly done: Promise<void> } | undefined;
  let last = Promise.resolve();

  const append = async (positions: ReadonlyMap<Lane, readonly number[]>): Promise<void> => {
    const claims = [...positions].map(([lane, claimed]): NewEvent => {
      const data = { channel: channel.name, lane, token: lease.token, sources: sourcesOf(claimed) };
      return { type: "DispatchClaimed", data };
    });
    const stream = STREAMS.delivery(channel.name);
    await lease.fenced((fence) => eventLog.append(stream, claims, SERVICE_METADATA, fence));
  };

  const gather = () => {
    const positions = new Map<Lane, number[]>();
    const done = last.then(nextTurn).then(() => {
      gathering = undefined;
      return append(positions);
    });
    last = done.catch(() => {});
    return { positions, done };
  };

  // A digest has an id of its own: it would double what was sent alone, or in another one.
  const hasDigests = channel.batch === undefined && backlogLaneOf(channel.name) === "clicks";
  const isRecognised = channel.recognisesMs !== undefined && !hasDigests;
  if (!isShared || isRecognised) return () => undefined;
  return (lane: OutboxWindow, items: readonly PendingDispatch[]) => {
    const unsent = items.filter(({ unrecorded }) => unrecorded === undefined);
    if (unsent.length === 0) return undefined;
    gathering ??= gather();
    const { positions, done } = gathering;
    const claimed = positions.get(lane.name) ?? [];
    positions.set(lane.name, claimed);
    for (const { event } of unsent) claimed.push(event.position);
    return done;
  };
}

/**
 * What answers teach of the channel. Its circuit is in the log for all instances to know, and for the one that takes the
 * channel over; its events go with the outcome that changed it, so that they cost no append.
 */
export function createLearning(
  deps: Pick<InFlightDeps, "channel" | "projector" | "clock" | "rateLimiter" | "suspension">,
) {
  const { projector, clock, rateLimiter, suspension } = deps;
  const channel = deps.channel.name;
  const published = (): number => breakerIn(findChannel(projector.state("deliveries"), channel), Infinity).openUntil;
  let announced = published();

  const learnCircuit = ({ failures, openUntil }: CircuitBreaker): readonly NewEvent[] => {
    if (openUntil === announced) return [];
    announced = openUntil;
    if (openUntil === 0) return [{ type: "CircuitClosed", data: { channel } }];
    return [{ type: "CircuitOpened", data: { channel, failures, until: isoTime(openUntil) } }];
  };

  const learn: Learn = (results, items) => {
    const now = clock();
    // Not the rest of a batch that ended early: it says nothing of the network.
    const asked = results.filter((result) => result.outcome !== "retryable" || result.unasked !== true);
    if (asked.length === 0) return [];
    const weightiest = weightiestResult(asked);
    rateLimiter.learn(weightiest, now);
    const pauseMs = Math.max(0, ...asked.map((one) => (one.outcome === "delivered" ? (one.pauseMs ?? 0) : 0)));
    if (pauseMs > 0) rateLimiter.pause(now + pauseMs);
    return [...learnCircuit(rateLimiter.breaker), ...suspension.learn(weightiest, items)];
  };

  return {
    learn,
    /** The append of what was learnt is over, whether the log took it or not. */
    recorded(learnt: readonly NewEvent[]): void {
      announced = published();
      suspension.recorded(learnt);
    },
  };
}

export interface PlannedRequest {
  readonly items: readonly PendingDispatch[];
  readonly mode: DispatchMode;
}

/** Decides on dispatches that may have arrived already: some networks recognise a repeat for a while. */
export function createDeduplicationWindow(deps: Pick<DispatchDeps, "channel" | "lease" | "clock">) {
  const { channel, lease, clock } = deps;
  /** Why it must not be sent; undefined: it may be. */
  const inDoubt = (lane: OutboxWindow, item: PendingDispatch, now: number): string | undefined => {
    const { position } = item.event;
    const state = lane.state();
    if (isClaimedByOther(state, position, lease.token)) return CLAIMED;
    const since = lane.uncertainSince(item);
    // Another network may have been configured since, which knows nothing of the attempt.
    if (since === undefined || now - since < (channel.recognisesMs ?? 0)) return undefined;
    return isOfBefore(state.restored, position) ? LOST : TOO_LATE;
  };

  return {
    /** The part of a request that may go together: a digest has an id of its own, by which the network recognises no click. */
    splitUncertain(lane: OutboxWindow, wanted: PlannedRequest): PlannedRequest {
      const { items, mode } = wanted;
      if (mode !== "digest") return wanted;
      const certain = items.filter((item) => lane.uncertainSince(item) === undefined);
      if (certain.length > 1) return { items: certain, mode };
      return { items: items.slice(0, 1), mode: "single" };
    },
    /** Gives the outcome "in doubt", in place of an attempt, to those that the network would no longer recognise. */
    markInDoubt(lane: OutboxWindow, items: readonly PendingDispatch[]): void {
      const now = clock();
      for (const item of items) {
        const detail = inDoubt(lane, item, now);
        if (detail === undefined || item.unrecorded !== undefined) continue;
        item.unrecorded = { type: "DispatchInDoubt", request: { attempt: item.attempts, detail } };
      }
    },
    /**
     * Those of the window that are in doubt since a restore, or since the instance ended that was about to send them; also
     * those that are not due yet. For {@link markInDoubt}.
     */
    interrupted(lane: OutboxWindow): readonly PendingDispatch[] {
      const state = lane.state();
      const { restored, claims } = state;
      if (restored === null && !claims.values().some((claim) => claim !== lease.token)) return [];
      const now = clock();
      const isInterrupted = (position: number): boolean =>
        isOfBefore(restored, position) || isClaimedByOther(state, position, lease.token);
      return lane.ready(Infinity, WINDOW_DISPATCHES_MAX, (item) => {
        // One whose outcome the log refused is tried again when its time has come.
        const isWaiting = item.unrecorded !== undefined && item.notBefore > now;
        return !isWaiting && isInterrupted(item.event.position) && inDoubt(lane, item, now) !== undefined;
      });
    },
  };
}

const CLAIMED =
  "the instance that had the channel before may have sent it when its lease ended; the network would not recognise a repeat";

const TOO_LATE = "an attempt may have arrived, and it is too late for the network to recognise a repeat";

const LOST = "the log was restored, and may have lost that it was delivered; the network would not recognise a repeat";
