import type { PlannedRequest } from "./deduplication-window.ts";
import type { DispatchDeps } from "./dispatch.ts";
import type { InFlight } from "./in-flight.ts";
import type { IntakePriority } from "./intake-priority.ts";
import { isTest, WINDOW_DISPATCHES_MAX, type OutboxWindow } from "./outbox-window.ts";
import { turnedAway, type Suspension } from "./suspension.ts";

interface StartDeps extends Pick<DispatchDeps, "channel" | "projector" | "clock"> {
  readonly digestAfterMs?: number | undefined;
  readonly intakePriority: IntakePriority;
  readonly inFlight: InFlight;
  readonly suspension: Suspension;
}

/** Starts what is due, the direct lane first, as long as there is room. */
export function startDue(deps: StartDeps, lanes: readonly OutboxWindow[]): void {
  const { clock, inFlight, intakePriority, suspension } = deps;
  for (const lane of lanes) inFlight.endInterrupted(lane);
  const direct = lanes.filter(({ name }) => name === "direct");
  for (const lane of direct) {
    // A test shows how things are now: neither pace nor circuit holds it back, nor what waits before it.
    for (const item of lane.ready(clock(), Infinity, isTest)) inFlight.start(lane, { items: [item], mode: "single" });
  }
  if (suspension.isSuspended()) {
    for (const lane of direct) turnAway(deps, lane);
    return;
  }
  for (const lane of lanes) {
    while (inFlight.hasRoom(clock())) {
      const request = nextRequest(deps, lane);
      if (request.items.length === 0) break;
      if (lane.name !== "direct") intakePriority.took(request.items.length);
      inFlight.start(lane, request);
    }
  }
}

/** Ends all that is due in the direct lane of a channel that is suspended; its clicks wait. */
function turnAway(deps: StartDeps, lane: OutboxWindow): void {
  for (const item of lane.ready(deps.clock(), Infinity)) {
    item.unrecorded ??= turnedAway(deps, lane, item, deps.suspension.detail());
    deps.inFlight.start(lane, { items: [item], mode: "single" });
  }
}

/**
 * What goes next from a lane: clicks together where the network takes them so, or where it cannot keep up with each.
 * Events of the webhook go one by one.
 */
function nextRequest({ channel, clock, digestAfterMs, intakePriority }: StartDeps, lane: OutboxWindow): PlannedRequest {
  const now = clock();
  if (lane.name === "direct") return { items: lane.ready(now, 1), mode: "single" };
  const share = intakePriority.share(now);
  if (share < 1) return { items: [], mode: "single" };
  if (channel.batch !== undefined) {
    return { items: lane.ready(now, Math.min(channel.batch.max, WINDOW_DISPATCHES_MAX, share)), mode: "batch" };
  }
  const single = lane.ready(now, 1);
  const [oldest] = single;
  const isAlone = oldest === undefined || lane.name === "events" || digestAfterMs === undefined;
  if (isAlone || now - Date.parse(oldest.event.time) < digestAfterMs) {
    return { items: single, mode: "single" };
  }
  const items = lane.ready(now, Math.min(WINDOW_DISPATCHES_MAX, share));
  return { items, mode: items.length > 1 ? "digest" : "single" };
}
