import type { SnapshotEntry } from "eventstore-lite";
import type { LogStore } from "../../events/event-types-and-codec.ts";
import { projectionOf, rewindOf, type ProjectionName, type SomeStates } from "../../projections/all.ts";
import { createStates, type FoldedStates } from "../../projections/fold-states.ts";
import { isReadAlongLog, catchUpStates, type Positions } from "./fold-range.ts";
import type { Moment, Place } from "./parse-moment.ts";
import type { HeldStates } from "./projector.ts";
import {
  isCurrent,
  isDue,
  listPast,
  PAST_EVERY_POSITIONS,
  pastName,
  strideAt,
  thinPast,
  voidedUpTo,
  loadFitting,
  packState,
  decodeInTimeSlices,
  inflateState,
} from "./past-snapshots.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { inTimeSlices } from "../platform/work-in-time-slices.ts";

export interface FoldToOptions extends Moment {
  /** The fold calls this now and then with the position that it has reached. */
  readonly onProgress?: (position: number) => void;
  /**
   * If set, a long fold keeps snapshots on its way, so that the next fold is short. All erasures up to this position
   * must be applied already; a later erasure makes these snapshots void.
   */
  readonly keepSince?: number;
  /**
   * Number of positions between two snapshots kept for past moments while a log is short; default
   * {@link PAST_EVERY_POSITIONS}.
   */
  readonly pastEvery?: number;
  /** Signal that ends the fold early, between two batches of events; its states are then useless. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Running projector of this process. Projections that can be rewound start from its present state if that is at the
   * moment or past it.
   */
  readonly now?: HeldStates | undefined;
}

/** States of projections at a place in the log, and the place itself: the last event that counts. */
export interface FoldedTo<Name extends ProjectionName> extends Place {
  readonly states: SomeStates<Name>;
}

/**
 * Folds the states of the named projections at a moment, from the nearest snapshots before it, or rewinds them from a
 * later state.
 */
export async function foldTo<Name extends ProjectionName>(
  store: LogStore,
  names: readonly Name[],
  { to, until, onProgress, keepSince, pastEvery = PAST_EVERY_POSITIONS, signal, now }: FoldToOptions = {},
): Promise<FoldedTo<Name>> {
  const bounds = { ...omitUndefined({ to, until }), backwards: true, limit: 1 };
  const [end] = await Array.fromAsync(store.read(bounds));
  if (end === undefined) return { states: createStates(names).all(), position: 0, time: undefined };
  const { position, time } = end;
  const from = new Map<ProjectionName, unknown>();
  const positions: Positions = new Map();
  const voided = await voidedUpTo(store);
  const nearest = await Promise.all(
    names.map((name) =>
      rewindOf(name) === undefined ? loadBefore(store, name, position, voided) : Promise.resolve(undefined),
    ),
  );
  // Opens the states one after the other. Each is opened in time slices; several at once would together block a request
  // for long.
  for (const [index, name] of names.entries()) {
    const found = nearest[index];
    const opened =
      rewindOf(name) === undefined
        ? found && { position: found.position, state: await decodeInTimeSlices(found.text) }
        : await openPutBack({ store, name, position, voided, now });
    positions.set(name, opened?.position ?? 0);
    if (opened !== undefined) from.set(name, opened.state);
  }
  const states = createStates(names, from);
  const passing = { store, states, positions, to: position, every: pastEvery };
  const keeping = keepSince === undefined ? undefined : await keepPassed(passing, keepSince);
  await catchUpStates(store, states, positions, { to: position, onProgress, signal, ...keeping?.stopping });
  await keeping?.end();
  return { states: states.all(), position, time };
}

interface PutBack {
  readonly now: FoldToOptions["now"];
  readonly store: LogStore;
  readonly name: ProjectionName;
  readonly position: number;
  readonly voided: ReadonlyMap<string, number>;
}

/**
 * Returns the state at `position`, rewound from the present state or the next later snapshot. If those are too far
 * away, returns the state of an earlier snapshot; undefined if there is none.
 */
async function openPutBack({ store, name, position, voided, now }: PutBack) {
  const rewind = rewindOf(name)!;
  if (now?.isFolded(name) === true && now.position >= position) {
    const state = await inTimeSlices(rewind(now.state(name), position));
    if (state !== undefined) return { position, state };
  }
  const isBehind = (entry: SnapshotEntry): boolean => entry.position >= position;
  const [behind] = (await listUsable(store, name, voided)).filter(isBehind);
  const later = behind && (await loadText(store, name, behind));
  const state = later && (await inTimeSlices(rewind(await decodeInTimeSlices(later.text), position)));
  if (state !== undefined) return { position, state };
  const before = await loadBefore(store, name, position, voided);
  return before && { position: before.position, state: await decodeInTimeSlices(before.text) };
}

/** Loads the nearest snapshot before `position`; undefined if there is none. */
async function loadBefore(store: LogStore, name: ProjectionName, position: number, voided: Voided) {
  const candidates = (await listUsable(store, name, voided)).filter((entry) => entry.position <= position);
  // A snapshot may be gone, replaced by a newer one, or encrypted with a deleted key. Then the snapshot before it is
  // used.
  for (const candidate of candidates.toReversed()) {
    const loaded = await loadText(store, name, candidate);
    if (loaded !== undefined) return loaded;
  }
  return undefined;
}

type Voided = PutBack["voided"];

/** Lists a projection's snapshots that no rebuild or erasure has made void, in the order of the log. */
async function listUsable(store: LogStore, name: ProjectionName, voided: Voided): Promise<readonly SnapshotEntry[]> {
  const newest = (await store.snapshots.list(name)).filter((entry) => entry.name === name);
  return [...(await listPast(store, name)), ...newest]
    .filter((entry) => isCurrent(entry, name, voided.get(name) ?? 0))
    .toSorted((one, other) => one.position - other.position);
}

/** Loads a snapshot's text; undefined if the snapshot is no longer there. */
async function loadText(store: LogStore, name: ProjectionName, { name: stored, position }: SnapshotEntry) {
  const snapshot = await loadFitting(store, stored);
  if (snapshot?.version !== projectionOf(name).version || snapshot.position !== position) return undefined;
  return { position, text: await inflateState(snapshot.state) };
}

interface Passing<Name extends ProjectionName> {
  readonly store: LogStore;
  readonly states: FoldedStates<Name>;
  readonly positions: Positions;
  readonly to: number;
  readonly every: number;
}

/**
 * Minimum number of events folded since the last snapshot for keeping another one, as a share of the distance between
 * two snapshots. To fold fewer events again takes less time than to encode a large state.
 */
const LITTLE = 1 / 4;

/**
 * Keeps snapshots at regular distances on the way of a fold, where there are none yet. They only shorten the next fold.
 */
async function keepPassed<Name extends ProjectionName>(
  { store, states, positions, to, every }: Passing<Name>,
  since: number,
) {
  const from = Math.min(...positions.values());
  const { position: head } = await store.head();
  const step = strideAt(head, every);
  const stops = Array.from({ length: Math.floor(to / step) }, (_, slot) => (slot + 1) * step);
  const last = new Map(positions);
  const folded = new Map<Name, number>();
  const onStop = async (position: number): Promise<void> => {
    if (position % step !== 0) return;
    for (const name of states.names) {
      if (
        positions.get(name) !== position ||
        !isDue(name, states.get(name), { position, last: last.get(name) ?? 0, every })
      )
        continue;
      // If few events were folded since the previous snapshot, no other is saved, because folding them again takes
      // little time. Projections whose fold reads the whole log are an exception: there, the events that are skipped
      // cost time too.
      if (states.foldedBy(name) - (folded.get(name) ?? 0) <= every * LITTLE && !isReadAlongLog(name)) continue;
      last.set(name, position);
      folded.set(name, states.foldedBy(name));
      const snapshot = { version: projectionOf(name).version, position, state: await packState(states.get(name)) };
      await store.snapshots.save(pastName({ projection: name, position, since }), snapshot).catch(() => {});
    }
  };
  return {
    stopping: { stops: stops.filter((stop) => stop > from), onStop },
    async end(): Promise<void> {
      for (const name of folded.keys()) await thinPast(store, name, every).catch(() => {});
    },
  };
}
