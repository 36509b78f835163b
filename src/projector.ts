import type { EventStore } from "eventstore-lite";
import type { Event, Recorded } from "../events/catalog.ts";
import { PROJECTION_NAMES, projectionOf, type ProjectionName, type StateOf, type States } from "../projections/all.ts";
import { decodeState, encodeState } from "../projections/snapshot.ts";

/** Events folded between two snapshots: bounds what a start has to fold again. */
const SNAPSHOT_EVERY_EVENTS = 20_000;

/** Feeds the log, in order, to every projection. */
export interface Projector extends AsyncDisposable {
  /** The state as of `position`; changes as the log grows, so it is read afresh for each decision. */
  state<Name extends ProjectionName>(name: Name): StateOf<Name>;
  readonly position: number;
  /** When the last folded event was recorded; undefined for an empty log. */
  readonly time: string | undefined;
  /** Resolves once everything up to `position` is folded in; rejects with the fault that stopped the projector. */
  until(position: number): Promise<void>;
  /** Calls `listener` after each event is folded in. The answer removes it again. */
  listen(listener: (event: Recorded) => void): () => void;
  /** Rejects with the fault that stopped the projector; never resolves. */
  readonly failed: Promise<never>;
}

/** Loads the snapshots, folds the rest of the log, and then follows it. Resolves once it has caught up. */
export async function startProjector(store: EventStore<Event>): Promise<Projector> {
  const restored = await restore(store);
  const head = await store.head();
  const follower = follow(store, restored);
  await follower.until(head.position);
  return follower;
}

interface Restored {
  readonly states: Map<ProjectionName, unknown>;
  /** Position up to which each projection is folded. */
  readonly positions: Map<ProjectionName, number>;
  /** Up to here all of them are. */
  readonly position: number;
  readonly time: string | undefined;
}

async function restore(store: EventStore<Event>): Promise<Restored> {
  const states = new Map<ProjectionName, unknown>();
  const positions = new Map<ProjectionName, number>();
  const head = await store.head();
  for (const name of PROJECTION_NAMES) {
    const projection = projectionOf(name);
    const snapshot = await store.snapshots.load(name);
    const usable = snapshot?.version === projection.version && snapshot.position <= head.position;
    states.set(name, usable ? decodeState(snapshot.state) : projection.initial());
    positions.set(name, usable ? snapshot.position : 0);
  }
  const position = Math.min(...positions.values());
  const last = await store.read({ from: position, to: position })[Symbol.asyncIterator]().next();
  return { states, positions, position, time: last.done === true ? undefined : last.value.time };
}

function follow(store: EventStore<Event>, restored: Restored): Projector {
  const { states, positions } = restored;
  const stop = new AbortController();
  const listeners = new Set<(event: Recorded) => void>();
  const waiters = new Set<{ position: number; resolve: () => void; reject: (fault: unknown) => void }>();
  let { position, time } = restored;
  let snapshotAt = position;
  let fault: { readonly reason: unknown } | undefined;

  const fold = (event: Recorded): void => {
    for (const name of PROJECTION_NAMES) {
      if (event.position <= (positions.get(name) ?? 0)) continue;
      states.set(name, projectionOf(name).evolve(states.get(name), event));
      positions.set(name, event.position);
    }
    position = event.position;
    time = event.time;
    for (const listener of listeners) listener(event);
    for (const waiter of waiters) {
      if (waiter.position > position) continue;
      waiters.delete(waiter);
      waiter.resolve();
    }
  };

  const loop = async (): Promise<void> => {
    for await (const event of store.subscribe({ from: position + 1, signal: stop.signal })) {
      fold(event);
      // A snapshot only shortens the next start: a full disk that cannot take it stops nothing.
      if (position - snapshotAt >= SNAPSHOT_EVERY_EVENTS) await save().catch(() => {});
    }
  };

  const save = async (): Promise<void> => {
    snapshotAt = position;
    for (const name of PROJECTION_NAMES) {
      const { version } = projectionOf(name);
      await store.snapshots.save(name, { version, position, state: encodeState(states.get(name)) });
    }
  };

  const running = loop();
  const failed = running.then(() => new Promise<never>(() => {}));
  failed.catch((reason: unknown) => {
    fault = { reason };
    for (const waiter of waiters) waiter.reject(reason);
    waiters.clear();
  });

  return {
    state: <Name extends ProjectionName>(name: Name) => states.get(name) as States[Name] as StateOf<Name>,
    get position() {
      return position;
    },
    get time() {
      return time;
    },
    until(wanted) {
      if (wanted <= position) return Promise.resolve();
      if (fault !== undefined) return Promise.reject(fault.reason);
      return new Promise((resolve, reject) => waiters.add({ position: wanted, resolve, reject }));
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    failed,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running.catch(() => {});
      // After a fault some states may hold half of an event: the next start folds them anew.
      if (fault === undefined && position > snapshotAt) await save().catch(() => {});
    },
  };
}
