import { SnapshotAhead, type EventStore, type Snapshot } from "eventstore-lite";
import type { Event, Recorded } from "../../events/catalog.ts";
import { PROJECTION_NAMES, projectionOf, type ProjectionName } from "../../projections/all.ts";
import { createStates, type FoldedStates } from "../../projections/states.ts";
import { catchUpStates, type Positions } from "./catch-up.ts";
import { applyForgotten, type Erase } from "./apply-erasures.ts";
import { createKeeper, type Keeper } from "./keeper.ts";
import { listPast, PAST_EVERY_POSITIONS } from "./past.ts";
import { loadRebuilt } from "./snapshots.ts";
import { unpackState } from "./stored-states.ts";
import { ServiceError } from "../platform/service-error.ts";

/**
 * Positions after which a long catch-up is saved: a start that is killed resumes there, and every past moment has a
 * snapshot near it.
 */
const STRETCH_POSITIONS = 250_000;

export interface Restored {
  readonly states: FoldedStates;
  readonly keeper: Keeper;
  /** All states are folded up to here. */
  readonly position: number;
  /** Of the event there. */
  readonly hash: string;
  readonly time: string | undefined;
}

export interface RestoreOptions {
  readonly erase?: Erase | undefined;
  /** Default: all. */
  readonly names?: readonly ProjectionName[];
  /** Positions between two snapshots of the past while a log is short. */
  readonly pastEvery?: number | undefined;
  /** How long a state is encoded at a time. */
  readonly sliceMs?: number | undefined;
}

/** Loads the snapshots and folds what came after each. Throws a ServiceError (damaged). */
export async function restoreStates(
  store: EventStore<Event>,
  { erase, names = PROJECTION_NAMES, pastEvery = PAST_EVERY_POSITIONS, sliceMs }: RestoreOptions = {},
): Promise<Restored> {
  const from = new Map<ProjectionName, unknown>();
  const positions: Positions = new Map(names.map((name) => [name, 0]));
  for (const name of names) {
    const snapshot = await loadSnapshot(store, name);
    if (snapshot?.version !== projectionOf(name).version) continue;
    from.set(name, await unpackState(snapshot.state));
    positions.set(name, snapshot.position);
  }
  // Asked for after the snapshots: another process may append and save in between.
  const head = await store.head();
  await preferRebuilt(store, from, positions, head.position);
  await applyForgotten(store, from, positions, { to: head.position, erase });
  const states = createStates(names, from);
  const past = { last: await findLastPast(store, names), every: pastEvery };
  const keeper = createKeeper({ store, states, positions, past, sliceMs });
  const stops = stretches(Math.min(...positions.values()), head.position);
  const onStop = (): Promise<void> => keeper.saveLong(positions);
  await catchUpStates(store, states, positions, { to: head.position, stops, onStop });
  return { states, keeper, ...head };
}

/** Of each projection the position of the last snapshot of the past. */
async function findLastPast(store: EventStore<Event>, names: readonly ProjectionName[]): Promise<Positions> {
  const last: Positions = new Map();
  for (const name of names) last.set(name, (await listPast(store, name)).at(-1)?.position ?? 0);
  return last;
}

async function loadSnapshot(store: EventStore<Event>, name: ProjectionName): Promise<Snapshot | undefined> {
  try {
    return await store.snapshots.load(name);
  } catch (fault) {
    throw fault instanceof SnapshotAhead ? lostEnd(fault) : fault;
  }
}

/** A snapshot from before a rebuild may hold what the rebuild has corrected. */
async function preferRebuilt(
  store: EventStore<Event>,
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

function* stretches(from: number, to: number): Generator<number> {
  for (let stop = from + STRETCH_POSITIONS; stop < to; stop += STRETCH_POSITIONS) yield stop;
}

/** A snapshot was taken of events that the log has lost. */
function lostEnd(cause: SnapshotAhead): ServiceError {
  const remedy =
    "Restore the whole log; or, to go on with what is left of it, run reachlog replay, which rebuilds the projections";
  return new ServiceError("damaged", `${cause.message}. ${remedy}`, { cause });
}
