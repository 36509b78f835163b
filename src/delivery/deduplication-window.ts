import type { DispatchMode } from "../../events/delivery.ts";
import { isClaimedByOther, isOfBefore, type LaneState } from "../../projections/deliveries.ts";
import type { DispatchDeps } from "./dispatch.ts";
import { WINDOW_DISPATCHES_MAX, type PendingDispatch, type OutboxWindow } from "./outbox-window.ts";

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
      if (restored === null && !hasOthers(claims, lease.token)) return [];
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

function hasOthers(claims: LaneState["claims"], token: number): boolean {
  for (const claim of claims.values()) if (claim !== token) return true;
  return false;
}

const CLAIMED =
  "the instance that had the channel before may have sent it when its lease ended; the network would not recognise a repeat";

const TOO_LATE = "an attempt may have arrived, and it is too late for the network to recognise a repeat";

const LOST = "the log was restored, and may have lost that it was delivered; the network would not recognise a repeat";
