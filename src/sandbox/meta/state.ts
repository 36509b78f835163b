import type { SandboxClock } from "../clock.ts";
import { BODIES_KEPT, createArrivals, TEXTS_KEPT, type Arrivals } from "../journal.ts";
import type { MetaEvent } from "./event.ts";

export interface MetaState {
  readonly clock: SandboxClock;
  readonly pixelId: string;
  readonly accessToken: string;
  /** Every body that was sent, taken or not. */
  readonly requests: Arrivals<unknown>;
  /** Events that were taken, repeats among them. */
  accepted: number;
  /** What Meta counts: one for each event_name and event_id within 48 hours. */
  readonly events: Arrivals<MetaEvent>;
  /** `event_name event_id` -> when it came first. Complete, so that nothing counts twice. */
  readonly seen: Map<string, number>;
}

/** https://developers.facebook.com/documentation/ads-commerce/conversions-api/parameters/server-event */
const DEDUPLICATED_MS = 48 * 3_600_000;

export function createMetaState(clock: SandboxClock): MetaState {
  return {
    clock,
    pixelId: "1234567890123456",
    accessToken: "EAASandboxMetaToken0123456789",
    requests: createArrivals(BODIES_KEPT),
    accepted: 0,
    events: createArrivals(TEXTS_KEPT),
    seen: new Map(),
  };
}

/** Counts an event, unless it is a repeat; without an id Meta cannot tell. */
export function countEvent(state: MetaState, event: MetaEvent): void {
  state.accepted++;
  const now = state.clock.now();
  if (event.event_id !== undefined) {
    const key = `${event.event_name} ${event.event_id}`;
    const first = state.seen.get(key);
    if (first !== undefined && now - first < DEDUPLICATED_MS) return;
    state.seen.set(key, now);
  }
  state.events.add(event);
}
