import { expect } from "bun:test";
import type { Recorded } from "../../../events/catalog.ts";
import { lanesOf, type ChannelName, type Lane } from "../../../events/channel.ts";
import { laneOf, requestsDispatch } from "../../../events/dispatches.ts";
import { pendingOf, type ChannelState } from "../../../projections/deliveries.ts";
import { DISPATCH_ATTEMPTS_MAX } from "../../../src/delivery/attempt-outcome.ts";
import type { OutcomeOfOne } from "../../harness/memory/outcomes.ts";
import { isFinal, keysByPosition, outcomesOf, type OrderWatch } from "./watch.ts";

/** What must hold of a channel once everything is settled. `ghosts`: appends that were made and reported as failed. */
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
  // Nothing lost, nothing invented, and nothing recorded twice but what the log had taken without saying so.
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

/** What the webhook was subscribed to when it was recorded. */
function carriedIn(log: readonly Recorded[]): readonly Recorded[] {
  let types: readonly string[] = [];
  return log.filter(({ type, data }) => {
    if (type === "WebhookSubscribed") ({ types } = data);
    return types.includes(type);
  });
}

/** Of each stream: the log has the end of an event before it has any outcome of a later one. */
export function auditOrder(log: readonly Recorded[], channel: ChannelName): void {
  const outcomes = outcomesOf(log, channel).filter(({ data }) => data.lane === "events");
  for (const ofStream of Map.groupBy(outcomes, ({ data }) => log[data.source - 1]?.stream).values()) {
    const sources = ofStream.map(({ data }) => data.source);
    expect(sources).toEqual(sources.toSorted((one, other) => one - other));
  }
}

/** No event was sent before the earlier ones of its stream ended, nor after its own end. */
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

/** Every dispatch requested below `low_watermark` had its end by then, or a failure with the time of its next attempt. */
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

/** The attempts at each dispatch are counted one by one, over restarts too. */
function auditAttempts(outcomes: readonly OutcomeOfOne[], keys: ReadonlyMap<number, string>): void {
  const last = new Map<number, number>();
  for (const { type, data } of outcomes) {
    const before = last.get(data.source) ?? 0;
    // One that ended without an attempt has the number of the last.
    const isNext = data.attempt === before + 1 || data.attempt === before;
    if (!isNext) throw new Error(`${keys.get(data.source)}: attempt ${data.attempt} after ${before}, ${type}`);
    if (data.attempt > DISPATCH_ATTEMPTS_MAX) expect(type).not.toBe("DispatchAbandoned");
    last.set(data.source, data.attempt);
  }
}

/** What the log says became of each must be what the channel's network knows. */
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
  // Of a letter that was retried, its outcome since.
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
