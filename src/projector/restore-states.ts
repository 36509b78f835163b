import { isStoreError, type Snapshot } from "eventstore-lite";
import type { Recorded, LogStore } from "../../events/event-types-and-codec.ts";
import {
  PROJECTION_NAMES,
  projectionOf,
  rewindOf,
  type ProjectionName,
  PERSONAL_PROJECTIONS,
} from "../../projections/all.ts";
import { createStates, type FoldedStates } from "../../projections/fold-states.ts";
import type { Late } from "./late-projections.ts";
import { catchUpStates, type Positions, foldRange, stretches } from "./fold-range.ts";
import { createSnapshotWriter, type SnapshotWriter } from "./snapshot-writer.ts";
import { listPast, PAST_EVERY_POSITIONS, loadRebuilt, unpackState } from "./past-snapshots.ts";
import { ServiceError } from "../platform/service-error.ts";

export interface Restored {
  readonly states: FoldedStates;
  readonly snapshotWriter: SnapshotWriter;
  /** Position up to which all states are folded, except those that are late. */
  readonly position: number;
  /** Hash of the event at `position`. */
  readonly hash: string;
  readonly time: string | undefined;
  readonly late: Late;
}

export interface RestoreOptions {
  /** Deletes the keys of a forgotten recipient, so that no state can be folded from their data. */
  readonly erase?: Erase | undefined;
  /** Projections to restore; default: all. */
  readonly names?: readonly ProjectionName[];
  /**
   * Number of positions between two snapshots kept for past moments while a log is short; default
   * {@link PAST_EVERY_POSITIONS}.
   */
  readonly pastEvery?: number | undefined;
  /** Time for which events are folded, or a snapshot is encoded, before other work has its turn; in ms, default 2. */
  readonly sliceMs?: number | undefined;
  /**
   * Number of positions: a projection that is further behind the log than this is left to `late`. Default: no
   * projection is left to `late`.
   */
  readonly lateAfter?: number | undefined;
}

/**
 * Restores the states of projections: loads the snapshots and folds what came after each. Throws a ServiceError
 * (damaged).
 */
export async function restoreStates(
  store: LogStore,
  {
    erase,
    names = PROJECTION_NAMES,
    pastEvery = PAST_EVERY_POSITIONS,
    sliceMs,
    lateAfter = Infinity,
  }: RestoreOptions = {},
): Promise<Restored> {
  const from = new Map<ProjectionName, unknown>();
  const positions: Positions = new Map(names.map((name) => [name, 0]));
  for (const name of names) {
    const snapshot = await loadSnapshot(store, name);
    if (snapshot?.version !== projectionOf(name).version) continue;
    from.set(name, await unpackState(snapshot.state));
    positions.set(name, snapshot.position);
  }
  // The head is read after the snapshots. Otherwise another process could append and save, and a snapshot would lie
  // beyond the head.
  const head = await store.head();
  await preferRebuilt(store, from, positions, head.position);
  await applyForgotten(store, from, positions, { to: head.position, erase });
  const states = createStates(names, from);
  const last: Positions = new Map();
  for (const name of names) {
    const kept = await listPast(store, name);
    last.set(name, kept.at(-1)?.position ?? 0);
    // Past snapshots of older versions are removed now: few are kept of a projection that can be rewound, so no newer
    // one may ever replace them.
    const stale = kept.filter(({ version }) => version !== projectionOf(name).version);
    if (rewindOf(name) === undefined || stale.length === 0) continue;
    await store.snapshots.remove(stale.map((entry) => entry.name)).catch(() => {});
  }
  const past = { last, every: pastEvery };
  const late: Positions = new Map([...positions].filter(([, position]) => head.position - position > lateAfter));
  for (const name of late.keys()) positions.delete(name);
  const snapshotWriter = createSnapshotWriter({ store, states, positions, past, sliceMs, late });
  const onTime = { names: [...positions.keys()], part: states.part };
  const stops = stretches(Math.min(...positions.values()), head.position);
  const onStop = (stop: number): Promise<void> => snapshotWriter.saveLong(positions, stop === head.position);
  await catchUpStates(store, onTime, positions, { to: head.position, stops, onStop });
  const lateStates = createStates([...late.keys()], from);
  const lateWriter = createSnapshotWriter({ store, states: lateStates, positions: late, past, sliceMs });
  return {
    states,
    snapshotWriter,
    ...head,
    late: { states: lateStates, positions: late, snapshotWriter: lateWriter },
  };
}

async function loadSnapshot(store: LogStore, name: ProjectionName): Promise<Snapshot | undefined> {
  try {
    return await store.snapshots.load(name);
  } catch (fault) {
    if (!isStoreError(fault, "snapshot_ahead")) throw fault;
    const remedy =
      "Restore the whole log; or, to continue with what is left of it, run reachlog replay, which rebuilds the projections";
    throw new ServiceError("damaged", `${fault.message}. ${remedy}`, { cause: fault });
  }
}

/**
 * Replaces states from snapshots by states that a later rebuild has stored: the snapshots may hold mistakes that the
 * rebuild corrected.
 */
async function preferRebuilt(
  store: LogStore,
  states: Map<ProjectionName, unknown>,
  positions: Positions,
  to: number,
): Promise<void> {
  const rebuilds = new Map<string, Recorded<"ProjectionRebuilt">>();
  const from = Math.min(...positions.values()) + 1;
  for await (const event of store.read({ types: ["ProjectionRebuilt"], from, to })) {
    if (event.type === "ProjectionRebuilt") rebuilds.set(event.data.projection, event);
  }
  for (const [name, position] of positions) {
    const event = rebuilds.get(name);
    if (event === undefined || event.position <= position) continue;
    const rebuilt = await loadRebuilt(store, name, event);
    if (rebuilt === undefined) continue;
    states.set(name, rebuilt.state);
    positions.set(name, rebuilt.position);
  }
}

/** Function that deletes the keys which an event of an erasure names, so that the erased data becomes unreadable. */
export type Erase = (event: Recorded<"PersonForgotten">) => Promise<void>;

/**
 * Applies erasures that were recorded after the snapshots: deletes their keys, and so the older snapshots, before the
 * log is folded up to `to`. Later erasures are applied while folding.
 */
export async function applyForgotten(
  store: LogStore,
  states: Map<ProjectionName, unknown>,
  positions: Positions,
  { to, erase }: { readonly to: number; readonly erase: Erase | undefined },
): Promise<void> {
  const names = PERSONAL_PROJECTIONS.filter((name) => positions.has(name));
  const from = Math.min(...names.map((name) => positions.get(name) ?? 0)) + 1;
  for await (const event of store.read({ types: ["PersonForgotten"], from, to })) {
    if (event.type !== "PersonForgotten") continue;
    await erase?.(event);
    for (const name of names) {
      if ((positions.get(name) ?? 0) >= event.position) continue;
      states.delete(name);
      positions.set(name, 0);
    }
  }
}

/**
 * Folds all projections that hold personal data again from the start of the log. Data whose keys were deleted is then
 * absent, as after a rebuild. Returns the names of the projections.
 */
export async function refold(store: LogStore, states: FoldedStates, to: number): Promise<readonly ProjectionName[]> {
  const rebuilt = createStates(PERSONAL_PROJECTIONS);
  if (to > 0) await foldRange(store, rebuilt, { from: 1, to });
  for (const name of PERSONAL_PROJECTIONS) states.replace(name, rebuilt.get(name));
  return PERSONAL_PROJECTIONS;
}
