import { backlogLaneOf, type Lane } from "../../events/channel-and-lane-names.ts";
import { sourcesOf } from "../../events/position-ranges.ts";
import { type NewEvent, SERVICE_METADATA, STREAMS } from "../log/event-log.ts";
import { nextTurn } from "../platform/work-in-time-slices.ts";
import { errorFields } from "../platform/logger.ts";
import { ask, describeCauses, type ChannelContext, type Learn, weightiestResult } from "./attempt-dispatches.ts";
import { type OutboxWindow, type PendingDispatch, WINDOW_DISPATCHES_MAX } from "./outbox-window.ts";
import { type RateLimiter, breakerIn, type CircuitBreaker } from "./pace-and-circuit-breaker.ts";
import { createRecorder, type OutcomeBatching, UNRECORDED_MAX } from "./outcome-recorder.ts";
import type { Suspension } from "./suspend-channel-and-alert-operator.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import type { DispatchMode } from "../../events/delivery.ts";
import { findChannel, isClaimedByOther, isOfBefore } from "../../projections/deliveries.ts";

/** Wait of a dispatch after a fault inside reachlog or of the log, in ms. */
const AFTER_FAULT_MS = 30_000;

/** Requests to a channel's network that are in flight. Disposing it lets them end, and records their outcomes. */
export type InFlight = ReturnType<typeof createInFlight>;

/**
 * The rate limiter and the suspension of a channel. Both change their state by the answers of the channel's network.
 */
interface Lessons {
  readonly rateLimiter: RateLimiter;
  readonly suspension: Suspension;
}

interface InFlightParts extends Lessons {
  /** Recorder of outcomes that all dispatchers of a log share. */
  readonly batchOutcomes: OutcomeBatching;
  /** A request calls this when it has ended, so that the dispatcher may start another one. */
  readonly onCompleted: () => void;
}

export function createInFlight(context: ChannelContext, parts: InFlightParts) {
  const { channel, clock, logger } = context;
  const { rateLimiter, suspension, onCompleted } = parts;
  const claim = createClaims(context);
  const record = createRecorder(context, parts.batchOutcomes);
  const deduplicationWindow = createDeduplicationWindow(context);
  const { learn, recorded } = createLearning(context, parts);
  const stopping = new AbortController();
  /** Number of requests that wait for the network's answer. */
  let asking = 0;
  /** Number of dispatches that the network has answered and that are not in the log yet. */
  let unrecorded = 0;
  const underWay = new Set<Promise<void>>();

  const askAndRecord = async (lane: OutboxWindow, { items, mode }: PlannedRequest): Promise<void> => {
    try {
      let learnt: readonly NewEvent[];
      asking++;
      try {
        const claimed = claim(lane, items);
        if (claimed !== undefined) await claimed;
        learnt = await ask(context, lane, items, { mode, learn, stopping: stopping.signal });
      } finally {
        // The network has answered and is free again. The next request may start while these answers are recorded.
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
    /** Starts the planned request, or the part of it that may be sent together now. */
    start(lane: OutboxWindow, wanted: PlannedRequest): void {
      const request: PlannedRequest = rateLimiter.isFailing()
        ? { items: wanted.items.slice(0, 1), mode: "single" }
        : deduplicationWindow.splitUncertain(lane, wanted);
      rateLimiter.started(clock());
      launch(lane, request);
    },
    /**
     * Records outcomes that need no request: dispatches in doubt after a restore or a takeover, and events that the
     * channel's filter excludes. Ignores the rate limit, because the network is not called.
     */
    endUnsent(lane: OutboxWindow): void {
      for (const items of [deduplicationWindow.interrupted(lane), lane.screened(clock())])
        if (items.length > 0) launch(lane, { items, mode: "single" });
    },
    /**
     * True if one more request to the network may start at `at`, ms since the epoch, by the rate limit and by the
     * number of unrecorded answers.
     */
    hasRoom(at: number): boolean {
      rateLimiter.notice(clock());
      return unrecorded < UNRECORDED_MAX && asking < rateLimiter.allowance(at);
    },
    /**
     * Stops a batch of dispatches that is being sent in several requests: a request in progress is completed, and no
     * further one is made.
     */
    endBatches: (): void => stopping.abort(),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all(underWay);
    },
  };
}

/**
 * Creates the function that records in the log which dispatches are about to be sent. Claims made during an append wait
 * for the next one. Does nothing if no other instance can take over, or if the network recognises each repeat.
 */
function createClaims({ channel, lease, eventLog, isShared }: ChannelContext) {
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

  // A network recognises a repeated dispatch only by the same id, but a click gets another id alone or in another
  // digest. A channel with digests must therefore record in the log which clicks it is about to send.
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
 * Creates the part of a dispatcher that learns from the network's answers. Changes of the circuit breaker are events,
 * so that the next holder of the channel knows them. They are appended with the outcome that caused them.
 */
export function createLearning(context: ChannelContext, { rateLimiter, suspension }: Lessons) {
  const { projector, clock } = context;
  const channel = context.channel.name;
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
    // The dispatches that a batch ended without sending say nothing about the network.
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
    /**
     * A request in flight calls this once it has appended the events that `learn` returned for the network's answers,
     * or failed to append them. Such events open or close the circuit breaker, or suspend or resume the channel.
     */
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

/**
 * Creates the check for dispatches that may have arrived already. Some networks recognise a repeat, but only for a
 * while.
 */
export function createDeduplicationWindow({ channel, lease, clock }: ChannelContext) {
  /** Returns why a dispatch is in doubt and must not be sent; undefined if it may be sent. */
  const inDoubt = (lane: OutboxWindow, item: PendingDispatch, now: number): string | undefined => {
    const { position } = item.event;
    const state = lane.state();
    if (isClaimedByOther(state, position, lease.token)) return CLAIMED;
    const since = lane.uncertainSince(item);
    // The dispatch may be sent if no attempt may have arrived, or if the network would still recognise a repeat. This
    // uses the network configured now, which may not be the one that received the attempt.
    if (since === undefined || now - since < (channel.recognisesMs ?? 0)) return undefined;
    return isOfBefore(state.restored, position) ? LOST : TOO_LATE;
  };

  return {
    /**
     * Returns the part of a planned request that may be sent together. Clicks that may have arrived are no part of a
     * digest, because the network recognises a digest by the digest's own id.
     */
    splitUncertain(lane: OutboxWindow, wanted: PlannedRequest): PlannedRequest {
      const { items, mode } = wanted;
      if (mode !== "digest") return wanted;
      const certain = items.filter((item) => lane.uncertainSince(item) === undefined);
      if (certain.length > 1) return { items: certain, mode };
      return { items: items.slice(0, 1), mode: "single" };
    },
    /**
     * Marks dispatches as in doubt if they may have arrived and the network would no longer recognise a repeat. No
     * further attempt is made at them.
     */
    markInDoubt(lane: OutboxWindow, items: readonly PendingDispatch[]): void {
      const now = clock();
      for (const item of items) {
        const detail = inDoubt(lane, item, now);
        if (detail === undefined || item.unrecorded !== undefined) continue;
        item.unrecorded = { type: "DispatchInDoubt", request: { attempt: item.attempts, detail } };
      }
    },
    /**
     * Returns dispatches of the window, even those not due yet, that are in doubt since a restore, or since an instance
     * ended before it recorded their outcome. For {@link markInDoubt}.
     */
    interrupted(lane: OutboxWindow): readonly PendingDispatch[] {
      const state = lane.state();
      const { restored, claims } = state;
      if (restored === null && !claims.values().some((claim) => claim !== lease.token)) return [];
      const now = clock();
      const isInterrupted = (position: number): boolean =>
        isOfBefore(restored, position) || isClaimedByOther(state, position, lease.token);
      return lane.ready(Infinity, WINDOW_DISPATCHES_MAX, (item) => {
        // If the log refused the item's outcome, the outcome is recorded again only when the item is due.
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
