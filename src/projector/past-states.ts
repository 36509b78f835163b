import type { EventType, LogStore } from "../../events/event-types-and-codec.ts";
import type { ProjectionName, States, SomeStates } from "../../projections/all.ts";
import { within } from "../platform/clock-ids-and-timers.ts";
import { ServiceError } from "../platform/service-error.ts";
import { foldTo } from "./fold-to-moment.ts";
import type { Projector } from "./projector.ts";

/** States of projections at past moments. One moment is folded at a time, while the service answers other requests. */
export type PastStates = ReturnType<typeof createPastStates>;

export interface PastStatesOptions {
  readonly store: LogStore;
  readonly projector: Projector;
  /** Signal that the service stops, which ends the fold in progress. */
  readonly stopping: AbortSignal;
  /** How long a caller waits for the states of a past moment, in ms; default {@link PAST_WAIT_MS}. */
  readonly patienceMs?: number;
}

/**
 * Number of past moments whose states stay in memory, so that moving from page to page folds nothing. With 50,000
 * recipients, one takes 60 MB.
 */
const HELD_MAX = 2;

/** Maximum number of callers that wait for states of past moments; they are answered one after the other. */
const WAITING_MAX = 4;

/** Maximum time in ms that a caller waits for the states of a past moment: less than a connection may be idle. */
export const PAST_WAIT_MS = 4_000;

/** Event types that change the states of past moments: after one, the states in memory are dropped. */
const VOIDING: ReadonlySet<EventType> = new Set(["PersonForgotten", "ProjectionRebuilt"]);

export function createPastStates({ store, projector, stopping, patienceMs = PAST_WAIT_MS }: PastStatesOptions) {
  const held = createHeld();
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  let voided = 0;
  projector.listen(({ type }) => {
    if (!VOIDING.has(type)) return;
    voided++;
    held.clear();
  });

  const fold = async <Name extends ProjectionName>(
    position: number,
    names: readonly Name[],
  ): Promise<SomeStates<Name>> => {
    for (;;) {
      const known = held.find(position, names);
      if (known !== undefined) return known;
      const before = voided;
      // This process has applied all erasures up to this position. If the log holds a later one, the snapshots that the
      // fold keeps are not used.
      const keepSince = projector.position;
      const missing = held.missing(position, names);
      const { states } = await foldTo(store, missing, { to: position, keepSince, signal: stopping, now: projector });
      if (stopping.aborted) throw new ServiceError("closed", "the service is stopping");
      if (voided === before) held.add(position, states);
    }
  };

  return {
    /**
     * Returns the states after the event at `position`. Undefined if they are not ready in time, or too many callers
     * wait; folding continues, so a retry soon finds them. Throws a ServiceError (closed).
     */
    async at<Name extends ProjectionName>(
      position: number,
      names: readonly Name[],
    ): Promise<SomeStates<Name> | undefined> {
      const known = held.find(position, names);
      if (known !== undefined) return known;
      if (waiting >= WAITING_MAX) return undefined;
      waiting++;
      const folded = last.then(() => fold(position, names)).finally(() => waiting--);
      last = folded.catch(() => {});
      return within(patienceMs, folded);
    },
  };
}

function createHeld() {
  /**
   * States in memory by position, in the order of the last request: the longest unused one is first and is dropped
   * first.
   */
  const moments = new Map<number, Partial<States>>();
  const missing = <Name extends ProjectionName>(position: number, names: readonly Name[]): readonly Name[] => {
    const states = moments.get(position) ?? {};
    return names.filter((name) => states[name] === undefined);
  };
  return {
    missing,
    find<Name extends ProjectionName>(position: number, names: readonly Name[]): SomeStates<Name> | undefined {
      const states = moments.get(position);
      if (states === undefined || missing(position, names).length > 0) return undefined;
      moments.delete(position);
      moments.set(position, states);
      return states as SomeStates<Name>;
    },
    add(position: number, states: Partial<States>): void {
      moments.set(position, { ...moments.get(position), ...states });
      for (const oldest of moments.keys()) if (moments.size > HELD_MAX && oldest !== position) moments.delete(oldest);
    },
    clear: () => moments.clear(),
  };
}
