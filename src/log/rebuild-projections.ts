import { isStoreError, type Snapshot } from "eventstore-lite";
import { createLogTree } from "eventstore-lite/proof";
import type { LogStore } from "../../events/event-types-and-codec.ts";
import { type ProjectionName, projectionOf } from "../../projections/all.ts";
import { createStates } from "../../projections/fold-states.ts";
import { createEventLog, type EventMetadata, type NewEvent, STREAMS } from "./event-log.ts";
import { makeId } from "../platform/clock-ids-and-timers.ts";
import { catchUpStates, type Positions } from "../projector/fold-range.ts";
import { differences } from "../projector/compare-states.ts";
import { lastForgotten, loadFitting, rebuiltName, packState, unpackState } from "../projector/past-snapshots.ts";

/**
 * Number of positions between two saves of a rebuild's progress: about a second's work, of which the save takes a few
 * hundredths.
 */
const SAVE_EVERY_POSITIONS = 1_000_000;

/**
 * Maximum number of events that a running service folds itself when it takes over a rebuilt state: some milliseconds'
 * work.
 */
const GAP_POSITIONS_MAX = 5_000;

/**
 * Projection that this thread folds alone, while a second thread folds the others. Its events are half of the bytes to
 * parse, and no other projection reads them.
 */
const FOLDED_ALONE: ProjectionName = "deliveries";

/**
 * Minimum number of positions for which a second thread makes a rebuild faster: starting the thread takes most of a
 * second.
 */
const WORKER_POSITIONS_MIN = 1_000_000;

/** The projections that one thread folds, and the position up to which it folds them. */
export interface PartOrder {
  readonly names: readonly ProjectionName[];
  readonly to: number;
}

interface FoldOptions {
  /** Signal that interrupts the rebuild; its progress is saved. */
  readonly signal: AbortSignal;
  /**
   * The rebuild calls this at its beginning, with the position at which it begins or resumes, and the present end of
   * the log.
   */
  readonly onBegin: (from: number, to: number) => void;
  readonly onProgress: (position: number) => void;
  /** Number of positions between two saves of the progress; default: a million. */
  readonly saveEveryPositions?: number;
}

export interface RebuildOptions extends FoldOptions {
  /** Names the caller in the event that records the rebuild. */
  readonly metadata: EventMetadata;
  /** True to ignore what an interrupted rebuild has saved. */
  readonly restart: boolean;
  /** Function that runs {@link foldPart} in another thread; absent if there is none. */
  readonly foldInWorker?: ((order: PartOrder, signal: AbortSignal) => Promise<void>) | undefined;
  /** Minimum number of positions for which a rebuild uses a second thread; default: a million. */
  readonly workerPositionsMin?: number;
}

export type Rebuilt = ReturnType<typeof toReport>;

/**
 * Folds the log again from its start, in one pass for all `names`, while a service runs; then stores the states and
 * records that in the log. Resolves with undefined if it was interrupted.
 */
export async function rebuild(
  store: LogStore,
  names: readonly ProjectionName[],
  options: RebuildOptions,
): Promise<readonly Rebuilt[] | undefined> {
  if (await foldOnTwoThreads(store, names, options)) {
    return rebuild(store, names, { ...options, foldInWorker: undefined, restart: false, onBegin() {} });
  }
  const work = await begin(store, names, options.restart);
  let to = work.head;
  options.onBegin(Math.min(...work.positions.values()), to);
  // Each round folds the events appended during the previous one. Folding is many times faster than any service
  // appends, so the gap shrinks.
  for (;;) {
    await advance(work, to, options);
    if (options.signal.aborted) {
      await keep(work);
      return undefined;
    }
    // A state that was folded before an erasure still holds the erased recipient, so the rebuild starts again.
    if ((await lastForgotten(store)) > work.head) return rebuild(store, names, { ...options, restart: true });
    const head = await store.head();
    if (head.position - to <= GAP_POSITIONS_MAX) break;
    to = head.position;
  }
  const rebuilt = names.map((name) => toReport(work, name, to));
  await publish(work, rebuilt, options.metadata);
  return rebuilt;
}

/** Computes the tiles of the log's Merkle tree again. If interrupted, the next proof computes the missing ones. */
export async function rebuildTree(store: LogStore, signal: AbortSignal): Promise<void> {
  const tree = createLogTree(store);
  const { position } = await store.head();
  await tree.forget();
  while (!(await tree.extend(position)) && !signal.aborted);
}

/**
 * Folds the projections in two threads up to the present end of the log. Resolves with false if one thread is enough.
 */
async function foldOnTwoThreads(store: LogStore, names: readonly ProjectionName[], options: RebuildOptions) {
  const { foldInWorker, restart, signal, workerPositionsMin = WORKER_POSITIONS_MIN } = options;
  const { position: to } = await store.head();
  const [own, apart] = [names.filter((name) => name === FOLDED_ALONE), names.filter((name) => name !== FOLDED_ALONE)];
  if (foldInWorker === undefined || to < workerPositionsMin || apart.length === 0 || own.length === 0) return false;
  if (restart) await store.snapshots.remove(names.map(partialName));
  await Promise.all([
    foldPart(store, { names: own, to }, options),
    // If the worker thread fails, this thread later folds what the worker has not saved, and reports any error then.
    foldInWorker({ names: apart, to }, signal).catch(() => {}),
  ]);
  return true;
}

/** Folds some projections up to a position, and saves the work for a rebuild to resume. */
export async function foldPart(store: LogStore, { names, to }: PartOrder, options: FoldOptions): Promise<void> {
  const work = await begin(store, names, false);
  options.onBegin(Math.min(...work.positions.values()), to);
  await advance(work, to, options);
  await keep(work);
}

type Work = Awaited<ReturnType<typeof begin>>;

async function begin(store: LogStore, names: readonly ProjectionName[], restart: boolean) {
  const from = new Map<ProjectionName, unknown>();
  const positions: Positions = new Map();
  const comparisons = new Map<ProjectionName, Comparison>();
  for (const name of names) {
    const partial = restart ? undefined : await loadPartial(store, name);
    // Saved progress that is not resumed is removed. If it were further than the progress that is saved next, the store
    // would keep it instead.
    if (partial === undefined) await store.snapshots.remove([partialName(name)]);
    if (partial !== undefined) from.set(name, partial.state);
    positions.set(name, partial?.position ?? 0);
    comparisons.set(name, await createComparison(store, name, partial));
  }
  // The head is read after the snapshots, so that no snapshot is beyond it, even if a running service saves newer ones
  // meanwhile.
  const { position: head } = await store.head();
  return { store, names, states: createStates(names, from), positions, comparisons, head };
}

async function advance(work: Work, to: number, options: FoldOptions): Promise<void> {
  const { signal, onProgress, saveEveryPositions = SAVE_EVERY_POSITIONS } = options;
  let savedAt = Math.min(...work.positions.values());
  const stops = new Set([...work.comparisons.values()].flatMap(({ stored }) => stored?.position ?? []));
  for (let stop = savedAt + saveEveryPositions; stop < to; stop += saveEveryPositions) stops.add(stop);
  const onStop = async (position: number): Promise<void> => {
    await compareAt(work);
    if (position - savedAt < saveEveryPositions) return;
    savedAt = position;
    await keep(work);
  };
  await compareAt(work);
  await catchUpStates(work.store, work.states, work.positions, { to, stops, onStop, onProgress, signal });
}

/** Compares each rebuilt projection that has reached the position of its snapshot with that snapshot. */
async function compareAt({ comparisons, positions, states }: Work): Promise<void> {
  for (const [name, comparison] of comparisons) {
    const { stored } = comparison;
    if (stored === undefined || stored.position !== positions.get(name)) continue;
    comparison.found = await differences(await unpackState(stored.state), states.get(name));
  }
}

async function keep(work: Work): Promise<void> {
  for (const name of work.names) {
    const { events, differences, position } = toReport(work, name, work.positions.get(name) ?? 0);
    await savePartial(work.store, name, { position, events, differences, state: work.states.get(name) });
  }
}

/**
 * Returns the data of the event that records a rebuild. `events`: number of folded events, including those before an
 * interruption; `differences`: where snapshot and log disagree, null without a snapshot.
 */
function toReport({ states, comparisons }: Work, projection: ProjectionName, position: number) {
  const { foldedBefore, found } = comparisons.get(projection)!;
  return { projection, events: foldedBefore + states.foldedBy(projection), position, differences: found };
}

/** Stores the rebuilt states, and then appends the event that names them, so that readers of the event find them. */
async function publish({ store, names, states }: Work, rebuilt: readonly Rebuilt[], metadata: EventMetadata) {
  for (const { projection, position } of rebuilt) {
    const { version } = projectionOf(projection);
    const snapshot = { version, position, state: await packState(states.get(projection)) };
    // The store keeps the snapshot with the highest position. A faulty instance, or a log before its restore, may have
    // saved one higher than this, so it is removed first.
    await store.snapshots.remove([rebuiltName(projection), projection]);
    await store.snapshots.save(rebuiltName(projection), snapshot);
    await store.snapshots.save(projection, snapshot);
  }
  const newEvents = rebuilt.map(({ projection, position, differences }): NewEvent => {
    const { version } = projectionOf(projection);
    const compared = differences === null ? {} : { differences: differences.length };
    return { type: "ProjectionRebuilt", data: { projection, version, position, ...compared } };
  });
  await createEventLog(store, makeId).append(STREAMS.projections, newEvents, metadata);
  await store.snapshots.remove(names.map(partialName));
}

/** Comparison of a rebuilt projection with its stored snapshot, at the snapshot's position. */
interface Comparison {
  /** Stored snapshot of the projection; undefined if there is none to compare with. */
  readonly stored: Snapshot | undefined;
  /** Differences between the rebuilt state and the snapshot; null if they were not compared. */
  found: readonly string[] | null;
  /** Number of events that the rebuild had folded before it was interrupted. */
  readonly foldedBefore: number;
}

async function createComparison(
  store: LogStore,
  name: ProjectionName,
  partial: Partial | undefined,
): Promise<Comparison> {
  const foldedBefore = partial?.events ?? 0;
  try {
    const snapshot = await store.snapshots.load(name);
    const stored = snapshot?.version === projectionOf(name).version ? snapshot : undefined;
    return { stored, found: partial?.differences ?? null, foldedBefore };
  } catch (fault) {
    if (!isStoreError(fault, "snapshot_ahead")) throw fault;
    return { stored: undefined, found: [fault.message], foldedBefore };
  }
}

/** Saved progress of an interrupted rebuild, for one projection. */
interface Partial {
  readonly position: number;
  readonly events: number;
  /** Differences found before the interruption; null if the snapshot was not compared yet. */
  readonly differences: readonly string[] | null;
  readonly state: unknown;
}

/**
 * Stored form of an interrupted rebuild's progress. The hash of the event at its position shows that it belongs to this
 * log.
 */
type Kept = Omit<Partial, "position"> & { readonly hash: string };

/**
 * Loads the saved progress of a rebuild. Undefined if none is saved, or if it belongs to another log or version of the
 * projection.
 */
export async function loadPartial(store: LogStore, name: ProjectionName): Promise<Partial | undefined> {
  const snapshot = await loadFitting(store, partialName(name));
  if (snapshot?.version !== projectionOf(name).version) return undefined;
  const { hash, ...kept } = (await unpackState(snapshot.state)) as Kept;
  const { position } = snapshot;
  return hash === (await store.hashAt(position)) ? { ...kept, position } : undefined;
}

/** Saves the progress of a rebuild. Does nothing before the first event. */
export async function savePartial(store: LogStore, name: ProjectionName, partial: Partial): Promise<void> {
  const { position, ...kept } = partial;
  const hash = position === 0 ? undefined : await store.hashAt(position);
  if (hash === undefined) return;
  const state = await packState({ ...kept, hash } satisfies Kept);
  await store.snapshots.save(partialName(name), { version: projectionOf(name).version, position, state });
}

function partialName(name: ProjectionName): string {
  return `rebuild/${name}`;
}
