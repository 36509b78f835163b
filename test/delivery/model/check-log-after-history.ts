import { expect } from "bun:test";
import type { Recorded } from "../../../events/event-types-and-codec.ts";
import { lanesOf, type ChannelName, type Lane } from "../../../events/channel-and-lane-names.ts";
import { laneOf, requestsDispatch } from "../../../events/dispatches-requested-by-events.ts";
import { pendingOf, type ChannelState } from "../../../projections/deliveries.ts";
import { DISPATCH_ATTEMPTS_MAX } from "../../../src/delivery/attempt-outcome.ts";
import type { OutcomeOfOne } from "../../harness/in-process/dispatch-outcome-events.ts";
import { isFinal, keysByPosition, outcomesOf, type OrderWatch } from "./check-requests.ts";

/**
 * Checks a channel after a history, once everything is settled. `ghosts`: number of appends that took effect but were
 * reported as failed.
 */
export function auditLog(
  log: readonly Recorded[],
  channel: ChannelName,
  { state, ghosts }: { readonly state: ChannelState; readonly ghosts: number },
): void {
  const carried = channel === "webhook" ? carriedIn(log) : [];
  const requesting = log.filter((event) => carried.includes(event) || requestsDispatch(event, channel));
  const outcomes = outcomesOf(log, channel);
  const finals = outcomes.filter(isFinal).map(({ data }) => data.source);
  const distinct = new Set(finals);
  // Each requested dispatch has a final outcome, and no other dispatch has one. Only an append that was reported as
  // failed may record an outcome twice.
  expect([...distinct].toSorted((a, b) => a - b)).toEqual(requesting.map(({ position }) => position));
  if (ghosts === 0) expect(finals).toHaveLength(distinct.size);
  expect(pendingOf(state)).toBe(0);
  for (const lane of lanesOf(channel)) {
    expect(state.lanes[lane]).toMatchObject({ above: new Map(), retries: new Map() });
    auditAccounts(
      outcomes,
      requesting
        .filter((event) => (carried.includes(event) ? "events" : laneOf(event)) === lane)
        .map(({ position }) => position),
      lane,
    );
  }
  auditAttempts(outcomes, keysByPosition(log));
}

/**
 * Returns the events that the webhook had to receive: those whose type it was subscribed to when they were recorded.
 */
function carriedIn(log: readonly Recorded[]): readonly Recorded[] {
  let types: readonly string[] = [];
  return log.filter(({ type, data }) => {
    if (type === "WebhookSubscribed") ({ types } = data);
    return types.includes(type);
  });
}

/** Checks that in each stream the dispatch of an event ended before any outcome of a later event. */
export function auditOrder(log: readonly Recorded[], channel: ChannelName): void {
  const outcomes = outcomesOf(log, channel).filter(({ data }) => data.lane === "events");
  for (const ofStream of Map.groupBy(outcomes, ({ data }) => log[data.source - 1]?.stream).values()) {
    const sources = ofStream.map(({ data }) => data.source);
    expect(sources).toEqual(sources.toSorted((one, other) => one - other));
  }
}

/**
 * Checks that no event was sent to the webhook before the dispatches of the earlier events of its stream had ended, or
 * after its own dispatch had ended.
 */
export function auditRequests(
  log: readonly Recorded[],
  { requests, ended }: Pick<OrderWatch, "requests" | "ended">,
): void {
  const carried = Map.groupBy(carriedIn(log), ({ stream }) => stream);
  for (const { event, at } of requests) {
    for (const { position } of carried.get(event.stream) ?? []) {
      if (position > event.position) break;
      const hasEnded = (ended.get(position) ?? Infinity) < at;
      if (position === event.position && hasEnded) throw new Error(`${position} was sent after its end`);
      if (position < event.position && !hasEnded)
        throw new Error(`${event.position} was sent before ${position} ended`);
    }
  }
}

/**
 * Checks that each dispatch requested below an outcome's `low_watermark` had ended by then, or had failed with a time
 * for its next attempt.
 */
function auditAccounts(outcomes: readonly OutcomeOfOne[], requesting: readonly number[], lane: Lane): void {
  const known = new Set<number>();
  let at = 0;
  const ofLane = outcomes.filter(({ data }) => data.lane === lane);
  for (const [position, ofEvent] of Map.groupBy(ofLane, (outcome) => outcome.position)) {
    for (const { data } of ofEvent) known.add(data.source);
    const below = ofEvent[0]?.data.low_watermark ?? 0;
    for (let source = requesting[at]; source !== undefined && source < below; source = requesting[++at]) {
      if (!known.has(source)) throw new Error(`position ${position} counts ${source} as settled, which it is not`);
    }
  }
}

/** Checks that the attempts of each dispatch are numbered consecutively, even across restarts. */
function auditAttempts(outcomes: readonly OutcomeOfOne[], keys: ReadonlyMap<number, string>): void {
  const last = new Map<number, number>();
  for (const { type, data } of outcomes) {
    const before = last.get(data.source) ?? 0;
    // A final outcome may come without a new attempt. It then repeats the number of the last attempt.
    const isNext = data.attempt === before + 1 || data.attempt === before;
    if (!isNext) throw new Error(`${keys.get(data.source)}: attempt ${data.attempt} after ${before}, ${type}`);
    if (data.attempt > DISPATCH_ATTEMPTS_MAX) expect(type).not.toBe("DispatchAbandoned");
    last.set(data.source, data.attempt);
  }
}

/** Checks that each outcome in the log agrees with what the channel's simulated network received. */
export function auditTruth(
  log: readonly Recorded[],
  channel: ChannelName,
  taken: ReadonlyMap<string, number>,
  { exposed, recognises }: { readonly exposed: ReadonlyMap<string, number>; readonly recognises: boolean },
): void {
  const keys = keysByPosition(log);
  for (const [key, count] of taken) {
    const most = 1 + (exposed.get(key) ?? 0);
    if (count > most) throw new Error(`${key} arrived ${count} times, and may have ${most} times`);
  }
  // If a dispatch was retried after its end, its latest final outcome counts.
  const ends = new Map<string, string>();
  for (const { type, data } of outcomesOf(log, channel).filter(isFinal)) ends.set(keys.get(data.source) ?? "", type);
  for (const [key, type] of ends) {
    const arrived = (taken.get(key) ?? 0) > 0;
    if (type === "DispatchSucceeded" && !arrived) throw new Error(`${key} counts as delivered and never arrived`);
    const isGone = type === "DispatchAbandoned" || type === "DispatchSkipped";
    if (isGone && arrived && !recognises && !exposed.has(key)) {
      throw new Error(`${key} counts as not delivered and arrived`);
    }
  }
}
