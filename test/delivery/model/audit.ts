import { expect } from "bun:test";
import type { Recorded } from "../../../events/catalog.ts";
import { laneOf, owes, pendingOf, type ChannelState } from "../../../projections/deliveries.ts";
import { ATTEMPTS_MAX } from "../../../src/delivery/retry.ts";
import { isFinal, keysByPosition } from "./watch.ts";

/** What must hold of the log once everything is settled. `ghosts`: appends that were made and told as failed. */
export function auditLog(log: readonly Recorded[], state: ChannelState, ghosts: number): void {
  const owing = log.filter((event) => owes(event, "chat"));
  const finals = log.filter(isFinal).map(({ data }) => ("owed" in data ? data.owed : 0));
  const distinct = new Set(finals);
  // Nothing lost, nothing invented, and nothing told twice but what the log had taken without saying so.
  expect([...distinct].toSorted((a, b) => a - b)).toEqual(owing.map(({ position }) => position));
  if (ghosts === 0) expect(finals).toHaveLength(distinct.size);
  expect(pendingOf(state)).toBe(0);
  for (const lane of ["clicks", "direct"] as const) {
    expect(state.lanes[lane]).toMatchObject({ above: new Map(), retries: new Map() });
    auditAccounts(
      log,
      owing.filter((event) => laneOf(event) === lane).map(({ position }) => position),
      lane,
    );
  }
  auditAttempts(log);
}

/** Everything owed below `settled_below` had its end by then, or a failure that tells of its next attempt. */
function auditAccounts(log: readonly Recorded[], owing: readonly number[], lane: "clicks" | "direct"): void {
  const told = new Set<number>();
  let at = 0;
  for (const event of log) {
    if (!("settled_below" in event.data) || event.data.lane !== lane) continue;
    told.add(event.data.owed);
    for (let owed = owing[at]; owed !== undefined && owed < event.data.settled_below; owed = owing[++at]) {
      if (!told.has(owed)) throw new Error(`position ${event.position} counts ${owed} as told of, which it is not`);
    }
  }
}

/** The attempts at each dispatch are counted one by one, over restarts too. */
function auditAttempts(log: readonly Recorded[]): void {
  const keys = keysByPosition(log);
  const last = new Map<number, number>();
  for (const { type, data } of log) {
    if (!("owed" in data) || !("attempt" in data)) continue;
    const before = last.get(data.owed) ?? 0;
    // One that ended without an attempt tells the number of the last.
    const isNext = data.attempt === before + 1 || data.attempt === before;
    if (!isNext) throw new Error(`${keys.get(data.owed)}: attempt ${data.attempt} after ${before}, ${type}`);
    if (data.attempt > ATTEMPTS_MAX) expect(type).not.toBe("ChannelDispatchAbandoned");
    last.set(data.owed, data.attempt);
  }
}

/** What the log says became of each must be what the network knows. */
export function auditTruth(
  log: readonly Recorded[],
  taken: ReadonlyMap<string, number>,
  { exposed, recognises }: { readonly exposed: ReadonlyMap<string, number>; readonly recognises: boolean },
): void {
  const keys = keysByPosition(log);
  for (const [key, count] of taken) {
    const most = 1 + (exposed.get(key) ?? 0);
    if (count > most) throw new Error(`${key} arrived ${count} times, and may have ${most} times`);
  }
  for (const { type, data } of log.filter(isFinal)) {
    if (!("owed" in data)) continue;
    const key = keys.get(data.owed) ?? "";
    const arrived = (taken.get(key) ?? 0) > 0;
    if (type === "ChannelDispatched" && !arrived) throw new Error(`${key} counts as delivered and never arrived`);
    const isGone = type === "ChannelDispatchAbandoned" || type === "ChannelDispatchSkipped";
    if (isGone && arrived && !recognises && !exposed.has(key)) {
      throw new Error(`${key} counts as not delivered and arrived`);
    }
  }
}
