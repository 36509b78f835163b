import { isStoreError } from "eventstore-lite";
import type { Recorded, LogStore } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES, type ProjectionName, type StateOf } from "../../projections/all.ts";
import { createStates } from "../../projections/fold-states.ts";
import { sleep } from "../platform/clock-ids-and-timers.ts";
import { errorFields, type Logger } from "../platform/logger.ts";
import { ServiceError } from "../platform/service-error.ts";
import { createTimeSlices, type TimeSlices } from "../platform/work-in-time-slices.ts";
import { differences, listMembers } from "./compare-states.ts";
import { createFoldBeside, type FoldBeside, type FoldBesideOptions } from "./late-projections.ts";
import { foldRange, STEP_EVENTS } from "./fold-range.ts";
import { restoreStates, type Restored, type RestoreOptions, type Erase, refold } from "./restore-states.ts";
import { loadRebuilt } from "./past-snapshots.ts";

/** Projector of a service: feeds the log, in order, to every projection, and holds the states. */
export type Projector = ReturnType<typeof follow>;

/** True for a fault that passes by itself, because the log or the key store is out of reach. */
function isPassing(fault: unknown): boolean {
  if (fault instanceof ServiceError) return fault.kind === "full" || fault.kind === "busy";
  return isStoreError(fault, "unavailable", "overloaded");
}

const RETRY_MS = 500;

/** States that a running projector holds, and the position up to which they are folded. */
export interface HeldStates {
  readonly position: number;
  readonly isFolded: Projector["isFolded"];
  readonly state: Projector["state"];
}

export interface ProjectorOptions extends Omit<RestoreOptions, "names"> {
  readonly logger?: Logger;
  /**
   * Returns true if this instance saves snapshots while it follows the log; default yes. Every instance saves them when
   * it stops.
   */
  readonly saves?: () => boolean;
}

/**
 * Starts the projector: loads the snapshots, folds the events after them, then follows the log. Projections further
 * behind than `lateAfter` are folded in the background later. Throws a ServiceError (damaged).
 */
export async function startProjector(store: LogStore, options: ProjectorOptions = {}): Promise<Projector> {
  return follow(store, await restoreStates(store, options), options);
}

function follow(store: LogStore, restored: Restored, { logger, erase, saves = () => true, sliceMs }: ProjectorOptions) {
  const { states, snapshotWriter } = restored;
  const stop = new AbortController();
  const waiters = createWaiters();
  /**
   * Callbacks after each event. The list is replaced, not changed, so that a listener may remove itself while it is
   * called.
   */
  let listeners: readonly ((event: Recorded) => void)[] = [];
  let { position } = restored;
  let last: Recorded | undefined;
  let fault: { readonly reason: unknown } | undefined;
  const turns = createTurns();
  const standing = { signal: stop.signal, position: () => position, logger };
  const onCaughtUp = () => ({ evolve } = onTime());
  const beside = foldLate(restored, { ...standing, store, sliceMs, whileStill: turns.between, onCaughtUp });
  const onTime = () => states.part(states.names.filter((name) => !beside.isLate(name)));
  let { evolve } = onTime();

  /** Folds one event into all states. Runs for every event, so nothing here allocates, waits or searches. */
  const fold = (event: Recorded): void => {
    evolve(event);
    position = event.position;
    last = event;
    for (const listener of listeners) listener(event);
    waiters.reached(position);
    if (position >= snapshotWriter.dueAt) snapshotWriter.turn(position, saves());
  };

  const parts = { store, logger, erase, states, snapshotWriter, beside, fold, slices: createTimeSlices(sliceMs) };

  const followOn = async (): Promise<void> => {
    const following = store.subscribeBatches({ from: position + 1, signal: stop.signal });
    for await (const batch of following) await turns.fold(() => foldBatch(parts, batch));
  };

  const isFolded = (): boolean => beside.shares().size === 0;
  const work = [untilDone(followOn, standing), untilDone(beside.run, { ...standing, isDone: isFolded })];
  const running = Promise.all(work);
  const failed = running.then(() => new Promise<never>(() => {}));
  failed.catch((reason: unknown) => {
    fault = { reason };
    waiters.fail(reason);
  });

  return {
    ...createReaders(beside, states),
    get position(): number {
      return position;
    },
    /** Hash that the log stores with the last event folded into the states. */
    get hash(): string {
      return last?.hash ?? restored.hash;
    },
    /** When the last folded event was recorded; undefined for an empty log. */
    get time(): string | undefined {
      return last?.time ?? restored.time;
    },
    /**
     * Resolves once everything up to `position` is folded into the states. Rejects with the fault that stopped the
     * projector.
     */
    until(wanted: number): Promise<void> {
      if (wanted <= position) return Promise.resolve();
      if (fault !== undefined) return Promise.reject(fault.reason);
      return waiters.wait(wanted);
    },
    /** Calls `listener` after each folded event. Returns a function that removes the listener. */
    listen(listener: (event: Recorded) => void): () => void {
      listeners = [...listeners, listener];
      return () => {
        listeners = listeners.filter((one) => one !== listener);
      };
    },
    /**
     * Promise that rejects with the fault that stopped the projector, and never resolves. A log that is out of reach
     * for a while does not stop it.
     */
    failed,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.allSettled(work);
      // After a fault no snapshot is saved, because some states may hold half of an event; the next start rebuilds
      // them.
      if (fault === undefined) await snapshotWriter.saveAll(position);
    },
  };
}

function createReaders(beside: FoldBeside, states: Restored["states"]) {
  return {
    /**
     * Returns a projection's state at the projector's position. Read it again for each decision, and never keep it over
     * an await: it changes with the log. Throws {@link ProjectionFolding} while it is incomplete.
     */
    state<Name extends ProjectionName>(name: Name): StateOf<Name> {
      beside.refuse(name);
      return states.get(name);
    },
    /** Returns false while the projection is still being folded from the log. */
    isFolded: (name: ProjectionName): boolean => !beside.isLate(name),
    /**
     * Returns the projections that are still being folded from the log, each with the share that is done (0 to 1);
     * mostly none.
     */
    folding: beside.shares,
    /** Resolves once these projections are complete; never if the projector is disposed before. */
    folded: beside.until,
  };
}

/**
 * Folds in the background the projections that the start left out because they were far behind, and then lets them
 * follow the log with the others.
 */
function foldLate(
  { states, snapshotWriter, late }: Restored,
  { logger, ...options }: Omit<FoldBesideOptions, "takeOver"> & { readonly logger: Logger | undefined },
): FoldBeside {
  return createFoldBeside(late, {
    ...options,
    takeOver(names, from) {
      for (const name of names) states.replace(name, from.get(name));
      snapshotWriter.replaced(names);
      const fields = { projections: names.join(", "), position: options.position() };
      logger?.info("projections were folded from the log", fields);
    },
  });
}

/**
 * Creates the order of work: batches of events are folded one after the other, and other work is done between two
 * batches.
 */
function createTurns() {
  const now = { folding: undefined as Promise<void> | undefined, between: undefined as Promise<void> | undefined };
  return {
    async fold(batch: () => Promise<void>): Promise<void> {
      while (now.between !== undefined) await now.between.catch(() => {});
      now.folding = batch();
      await now.folding;
    },
    between(work: () => Promise<void>): Promise<void> {
      const before = now.folding?.catch(() => {});
      now.between = Promise.resolve(before)
        .then(work)
        .finally(() => (now.between = undefined));
      return now.between;
    },
  };
}

interface Standing {
  /** True once the retries may end; default: only when `signal` has aborted. */
  readonly isDone?: () => boolean;
  readonly signal: AbortSignal;
  readonly position: () => number;
  readonly logger: Logger | undefined;
}

/**
 * Repeats `work` if it fails with a fault that passes by itself. After such a fault no event is half folded, so the
 * work can resume.
 */
async function untilDone(
  work: () => Promise<void>,
  { isDone = () => false, signal, position, logger }: Standing,
): Promise<void> {
  /** Position at the last fault, so that the operator's log gets one line for each outage. */
  let stoodAt: number | undefined;
  while (!signal.aborted && !isDone()) {
    try {
      await work();
    } catch (fault) {
      if (!isPassing(fault)) throw fault;
      if (stoodAt !== position()) logger?.warn("the log could not be followed; retrying", errorFields(fault));
      stoodAt = position();
      await sleep(RETRY_MS, signal);
    }
  }
}

interface Folding {
  readonly states: Restored["states"];
  readonly snapshotWriter: Restored["snapshotWriter"];
  readonly beside: FoldBeside;
  readonly store: LogStore;
  readonly logger: Logger | undefined;
  readonly erase: Erase | undefined;
  readonly fold: (event: Recorded) => void;
  /**
   * Time slices that span several batches: after a standstill, the waiting batches come one right after the other, so a
   * pause for each batch would not do.
   */
  readonly slices: TimeSlices;
}

/**
 * Folds a batch of events. Before it folds `ProjectionRebuilt`, it loads the rebuilt state. Before it folds
 * `PersonForgotten`, it deletes the keys and folds the projections with personal data again from the log's start.
 */
async function foldBatch(folding: Folding, batch: readonly Recorded[]): Promise<void> {
  const { store, erase, states, snapshotWriter, beside, fold, slices } = folding;
  for (const event of batch) {
    if (event.position % STEP_EVENTS === 0 && slices.isOver()) await slices.next();
    const encoding = snapshotWriter.encoding(event.type);
    if (encoding !== undefined) await encoding;
    if (event.type === "ProjectionRebuilt") {
      await beside.whileHalted(() => takeOver(folding, event));
      snapshotWriter.voidPast(PROJECTION_NAMES.filter((name) => name === event.data.projection));
    }
    if (event.type !== "PersonForgotten" || erase === undefined) {
      fold(event);
      continue;
    }
    const { position } = event;
    let names: readonly ProjectionName[] = [];
    // While the keys are deleted, late projections are halted, because they must neither hold nor store data that these
    // keys opened.
    await beside.whileHalted(async () => {
      await erase(event);
      return (names = await refold(store, states, position - 1));
    });
    fold(event);
    snapshotWriter.voidPast(names);
    await snapshotWriter.save(names, position);
    // Reads the batch again from the erasure on, because its events were decrypted with keys that are deleted now.
    // Reading the erasure again makes the store discard unencrypted copies of events that were encrypted with these
    // keys meanwhile.
    const to = batch.at(-1)?.position ?? position;
    const again = await Array.fromAsync(store.read({ from: position, to }));
    return foldBatch(folding, again.slice(1));
  }
}

/**
 * Replaces a projection's state by the rebuilt one that `event` reports, right before that event is folded. Returns the
 * projection if it was replaced. Logs a faulty rebuilt state and keeps the present one.
 */
async function takeOver(folding: Folding, event: Recorded<"ProjectionRebuilt">): Promise<readonly ProjectionName[]> {
  const { logger } = folding;
  const fields = { projection: event.data.projection, position: event.position };
  try {
    const found = await replace(folding, event);
    if (found === undefined) {
      logger?.info("a rebuilt projection was discarded: it has another version, or a later one follows", fields);
    } else if (found.length === 0) {
      logger?.info("a rebuilt projection was loaded, without a difference", fields);
    } else {
      const members = listMembers(found).join(", ");
      logger?.warn("a projection differed from the log and was replaced by the rebuilt one", { ...fields, members });
    }
    return found === undefined ? [] : PROJECTION_NAMES.filter((name) => name === event.data.projection);
  } catch (fault) {
    logger?.error("a rebuilt projection could not be loaded", { ...fields, ...errorFields(fault) });
    return [];
  }
}

/**
 * Replaces a projection's state by the rebuilt one, and returns the differences between the two; undefined if nothing
 * was replaced.
 */
async function replace(
  { store, states, beside }: Folding,
  event: Recorded<"ProjectionRebuilt">,
): Promise<readonly string[] | undefined> {
  const name = PROJECTION_NAMES.find((known) => known === event.data.projection);
  const rebuilt = name === undefined ? undefined : await loadRebuilt(store, name, event);
  if (name === undefined || rebuilt === undefined) return undefined;
  const shadow = createStates([name], new Map([[name, rebuilt.state]]));
  await foldRange(store, shadow, { from: rebuilt.position + 1, to: event.position - 1 });
  const found = beside.isLate(name) ? [] : await differences(states.get(name), shadow.get(name));
  states.replace(name, shadow.get(name));
  return found;
}

interface Waiter {
  readonly position: number;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

function createWaiters() {
  /**
   * Callers that wait for a position, the lowest first. Most come in the order of the log, so they are added at the
   * end.
   */
  const waiting: Waiter[] = [];
  let next = Infinity;

  return {
    /** Resolves when the states reach `position`; rejects if they never will. */
    wait(position: number): Promise<void> {
      return new Promise((resolve, reject) => {
        const before = waiting.findLastIndex((waiter) => waiter.position <= position);
        waiting.splice(before + 1, 0, { position, resolve, reject });
        next = waiting[0]?.position ?? Infinity;
      });
    },
    /**
     * Resolves the callers that wait for `position`. Runs for every event, so it makes just one comparison if no caller
     * waits.
     */
    reached(position: number): void {
      if (position < next) return;
      const later = waiting.findIndex((waiter) => waiter.position > position);
      for (const waiter of waiting.splice(0, later === -1 ? waiting.length : later)) waiter.resolve();
      next = waiting[0]?.position ?? Infinity;
    },
    fail(reason: unknown): void {
      for (const waiter of waiting.splice(0)) waiter.reject(reason);
      next = Infinity;
    },
  };
}
