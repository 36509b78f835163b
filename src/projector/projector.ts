import { StoreOverloaded, StoreUnavailable } from "eventstore-lite";
import type { Recorded, LogStore } from "../../events/catalog.ts";
import { PROJECTION_NAMES, type ProjectionName, type StateOf } from "../../projections/all.ts";
import { createStates } from "../../projections/states.ts";
import { sleep } from "../platform/clock.ts";
import { errorFields, type Logger } from "../platform/logger.ts";
import { ServiceError } from "../platform/service-error.ts";
import { createTimeSlices, type TimeSlices } from "../platform/time-slices.ts";
import { differences, listMembers } from "./differences.ts";
import { createFoldBeside, type FoldBeside, type FoldBesideOptions } from "./late-projections.ts";
import { foldRange, STEP_EVENTS } from "./fold-range.ts";
import { restoreStates, type Restored, type RestoreOptions, type Erase, refold } from "./restore.ts";
import { loadRebuilt } from "./snapshots.ts";

/** Feeds the log, in order, to every projection. */
export type Projector = ReturnType<typeof follow>;

/** True if the log, or the keys of its data, are out of reach and come back by themselves. */
function isPassing(fault: unknown): boolean {
  if (fault instanceof ServiceError) return fault.kind === "full" || fault.kind === "busy";
  return fault instanceof StoreUnavailable || fault instanceof StoreOverloaded;
}

const RETRY_MS = 500;

export interface ProjectorOptions extends Omit<RestoreOptions, "names"> {
  readonly logger?: Logger;
  /**
   * True if this instance saves snapshots while it follows the log; default yes. All instances save theirs at the end.
   */
  readonly saves?: () => boolean;
}

/**
 * Loads the snapshots, folds the rest of the log, and then follows it. Resolves once it has caught up; projections that
 * are further behind than `lateAfter` are folded in the background after that. Throws a ServiceError (damaged).
 */
export async function startProjector(store: LogStore, options: ProjectorOptions = {}): Promise<Projector> {
  return follow(store, await restoreStates(store, options), options);
}

function follow(store: LogStore, restored: Restored, { logger, erase, saves = () => true, sliceMs }: ProjectorOptions) {
  const { states, snapshotWriter } = restored;
  const stop = new AbortController();
  const waiters = createWaiters();
  /** Replaced, not changed, so that a listener may remove itself while it is called. */
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

  /** Runs for every event: nothing here allocates, waits or searches. */
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
    /** Hash of the last folded event, as the log holds it. */
    get hash(): string {
      return last?.hash ?? restored.hash;
    },
    /** When the last folded event was recorded; undefined for an empty log. */
    get time(): string | undefined {
      return last?.time ?? restored.time;
    },
    /** Resolves once everything up to `position` is folded in; rejects with the fault that stopped the projector. */
    until(wanted: number): Promise<void> {
      if (wanted <= position) return Promise.resolve();
      if (fault !== undefined) return Promise.reject(fault.reason);
      return waiters.wait(wanted);
    },
    /** Calls `listener` after each event is folded in. The returned function removes it again. */
    listen(listener: (event: Recorded) => void): () => void {
      listeners = [...listeners, listener];
      return () => {
        listeners = listeners.filter((one) => one !== listener);
      };
    },
    /**
     * Rejects with the fault that stopped the projector; never resolves. A log that is out of reach for a while is no
     * fault.
     */
    failed,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.allSettled(work);
      // After a fault some states may hold half of an event; the next start rebuilds them.
      if (fault === undefined) await snapshotWriter.saveAll(position);
    },
  };
}

function createReaders(beside: FoldBeside, states: Restored["states"]) {
  return {
    /**
     * The state as of `position`. It changes as the log grows and is another object after a rebuild, so read it again
     * for each decision, and never keep it over an await. Throws {@link ProjectionFolding} while it is not complete.
     */
    state<Name extends ProjectionName>(name: Name): StateOf<Name> {
      beside.refuse(name);
      return states.get(name);
    },
    /** False while the projection is still being folded from the log. */
    isFolded: (name: ProjectionName): boolean => !beside.isLate(name),
    /** Projections that are being folded from the log, each with the share that is done (0 to 1); mostly none. */
    folding: beside.shares,
    /** Resolves once these projections are folded; never if the projector is disposed before. */
    folded: beside.until,
  };
}

/** Folds the projections that a start left out, and then lets them follow the log with the others. */
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

/** Runs one batch after the other, and other work between two of them. */
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
  /** Default: once `signal` has aborted. */
  readonly isDone?: () => boolean;
  readonly signal: AbortSignal;
  readonly position: () => number;
  readonly logger: Logger | undefined;
}

/** Retries after faults that pass by themselves, which leave each event folded whole or not at all. */
async function untilDone(
  work: () => Promise<void>,
  { isDone = () => false, signal, position, logger }: Standing,
): Promise<void> {
  /** The position of the last fault: an outage is one line of the operator's log. */
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

interface Folding extends Pick<Restored, "states" | "snapshotWriter"> {
  readonly beside: FoldBeside;
  readonly store: LogStore;
  readonly logger: Logger | undefined;
  readonly erase: Erase | undefined;
  readonly fold: (event: Recorded) => void;
  /** Shared by all batches: those that wait in memory after a standstill come without a pause. */
  readonly slices: TimeSlices;
}

/** Folds events in, and applies those that replace a state. */
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
    // Late projections must neither hold nor store data that these keys opened.
    await beside.whileHalted(async () => {
      await erase(event);
      return (names = await refold(store, states, position - 1));
    });
    fold(event);
    snapshotWriter.voidPast(names);
    await snapshotWriter.save(names, position);
    // The later events of the batch were opened while the keys existed. Reading the erasing event once more also drops
    // data that was encrypted here with the keys meanwhile.
    const to = batch.at(-1)?.position ?? position;
    const again = await Array.fromAsync(store.read({ from: position, to }));
    return foldBatch(folding, again.slice(1));
  }
}

/**
 * Replaces a live state by the rebuilt one that `event` reports; the states stand right before that event. Returns the
 * projection if it was replaced. If the rebuilt state is faulty, logs that and keeps the live one.
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

/** The differences between the two; undefined if nothing was replaced. */
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
  /** The lowest position first. Most come in the order of the log, so they are added at the end. */
  const waiting: Waiter[] = [];
  let next = Infinity;

  return {
    /** Resolves when `position` is reached; rejects if it never will be. */
    wait(position: number): Promise<void> {
      return new Promise((resolve, reject) => {
        const before = waiting.findLastIndex((waiter) => waiter.position <= position);
        waiting.splice(before + 1, 0, { position, resolve, reject });
        next = waiting[0]?.position ?? Infinity;
      });
    },
    /** Called for every event: one comparison if no caller waits for it. */
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
