import type { EventStore } from "eventstore-lite";
import type { Event, EventType } from "../../events/catalog.ts";
import { PROJECTION_NAMES, type States } from "../../projections/all.ts";
import { sleep } from "../platform/clock.ts";
import { ServiceError } from "../platform/service-error.ts";
import { foldTo } from "./fold-to.ts";
import type { Projector } from "./projector.ts";

/** All states as of moments of the past, for a service that answers others meanwhile: one is folded at a time. */
export interface PastStates {
  /**
   * The states after the event at `position`, which is in the log. Undefined: they are not ready yet, or too many others
   * wait. What was begun goes on, so that it is worth asking again soon. Throws a ServiceError (closed).
   */
  at(position: number): Promise<States | undefined>;
}

export interface PastStatesOptions {
  readonly store: EventStore<Event>;
  readonly projector: Pick<Projector, "position" | "listen">;
  /** Ends what is under way. */
  readonly stopping: AbortSignal;
  /** How long whoever asks waits; default {@link PATIENCE_MS}. */
  readonly patienceMs?: number;
}

/** Moments whose states stay in memory, so that going from page to page folds nothing. With 50,000 people one is 60 MB. */
const HELD_MAX = 2;

/** Moments that are folded or wait for that. */
const WAITING_MAX = 4;

/** Less than a connection may be idle. */
const PATIENCE_MS = 4_000;

/** After these, the states of before are other ones. */
const VOIDING: ReadonlySet<EventType> = new Set(["PersonForgotten", "ProjectionRebuilt"]);

export function createPastStates({
  store,
  projector,
  stopping,
  patienceMs = PATIENCE_MS,
}: PastStatesOptions): PastStates {
  /** The one asked for last is the last. */
  const held = new Map<number, Promise<States>>();
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  let voided = 0;
  projector.listen(({ type }) => {
    if (!VOIDING.has(type)) return;
    voided++;
    held.clear();
  });

  const fold = async (position: number): Promise<States> => {
    for (;;) {
      const before = voided;
      // What this process has come to is erased: who is forgotten after that voids what is kept of this fold.
      const keepSince = projector.position;
      const { states } = await foldTo(store, PROJECTION_NAMES, { to: position, keepSince, signal: stopping });
      if (stopping.aborted) throw new ServiceError("closed", "the service is stopping");
      if (voided === before) return states;
    }
  };

  const begin = (position: number): Promise<States> => {
    waiting++;
    const begun = last.then(() => fold(position)).finally(() => waiting--);
    last = begun.catch(() => held.delete(position));
    return begun;
  };

  return {
    async at(position) {
      const known = held.get(position);
      if (known === undefined && waiting >= WAITING_MAX) return undefined;
      const states = known ?? begin(position);
      held.delete(position);
      held.set(position, states);
      for (const oldest of held.keys()) {
        if (held.size <= HELD_MAX) break;
        held.delete(oldest);
      }
      return within(patienceMs, states);
    },
  };
}

/** Undefined when it takes longer. */
async function within<Result>(ms: number, work: Promise<Result>): Promise<Result | undefined> {
  const done = new AbortController();
  try {
    return await Promise.race([work, sleep(ms, done.signal).then(() => undefined)]);
  } finally {
    done.abort();
  }
}
