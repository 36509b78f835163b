import type { LogStore } from "../../events/catalog.ts";
import { projectionOf, rewindOf, type ProjectionName, type States } from "../../projections/all.ts";
import { createStates, type FoldedStates } from "../../projections/states.ts";
import { isReadAlongLog, catchUpStates, type Positions } from "./fold-range.ts";
import type { Moment, Place } from "./parse-moment.ts";
import type { Projector } from "./projector.ts";
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
} from "./snapshots.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { inTimeSlices } from "../platform/time-slices.ts";

export interface FoldToOptions extends Moment {
  /** Told now and then which position is folded. */
  readonly onProgress?: (position: number) => void;
  /**
   * Keeps snapshots of what a long way passes, so that the next one is short. The position up to which the keys of all
   * who were forgotten are known to be deleted: what is made while one is being forgotten is void then.
   */
  readonly keepSince?: number;
  /** Positions between two snapshots of the past while a log is short; default {@link PAST_EVERY_POSITIONS}. */
  readonly pastEvery?: number;
  /** Gives the work up, between two batches of events; the states are of no use then. */
  readonly signal?: AbortSignal | undefined;
  /** States that are folded further, from which some are put back. */
  readonly now?: Pick<Projector, "position" | "isFolded" | "state"> | undefined;
}

/** States as of a place in the log: the last event that counts. */
export interface FoldedTo<Name extends ProjectionName> extends Place {
  readonly states: Pick<States, Name>;
}

/**
 * What the named projections say of the log up to a moment: folded from the nearest snapshots before it, or put back from a
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
  const sources = await Promise.all(
    names.map(async (name) => {
      const rewind = rewindOf(name);
      if (rewind === undefined || now?.isFolded(name) !== true || now.position < position)
        return loadNearest(store, name, position, voided.get(name) ?? 0);
      return { position, open: () => inTimeSlices(rewind(now.state(name), position)) };
    }),
  );
  // One after the other: each is opened in time slices, and those of several would be one long slice to a request.
  for (const [index, name] of names.entries()) {
    const source = sources[index];
    positions.set(name, source?.position ?? 0);
    if (source !== undefined) from.set(name, await source.open());
  }
  const states = createStates(names, from);
  const passing = { store, states, positions, to: position, every: pastEvery };
  const keeping = keepSince === undefined ? undefined : await keepPassed(passing, keepSince);
  await catchUpStates(store, states, positions, { to: position, onProgress, signal, ...keeping?.stopping });
  await keeping?.end();
  return { states: states.all(), position, time };
}

/** The snapshot from which the way to `position` is shortest, a later one of what is put back; undefined: none. */
async function loadNearest(store: LogStore, name: ProjectionName, position: number, voided: number) {
  const rewind = rewindOf(name);
  const newest = (await store.snapshots.list(name)).filter((entry) => entry.name === name);
  const candidates = [...(await listPast(store, name)), ...newest].filter(
    (entry) => (entry.position <= position || rewind !== undefined) && isCurrent(entry, name, voided),
  );
  // One may be gone, replaced by a newer one or encrypted with a key that is gone: then the one before it is taken.
  for (const candidate of candidates.toSorted((one, other) => other.position - one.position)) {
    const snapshot = await loadFitting(store, candidate.name);
    if (snapshot?.version !== projectionOf(name).version || snapshot.position !== candidate.position) continue;
    const text = await inflateState(snapshot.state);
    if (rewind === undefined || snapshot.position <= position)
      return { position: snapshot.position, open: () => decodeInTimeSlices(text) };
    return { position, open: async () => inTimeSlices(rewind(await decodeInTimeSlices(text), position)) };
  }
  return undefined;
}

interface Passing<Name extends ProjectionName> {
  readonly store: LogStore;
  readonly states: FoldedStates<Name>;
  readonly positions: Positions;
  readonly to: number;
  readonly every: number;
}

/** Of the positions between two snapshots: so many events take less time to fold than a large state to encode. */
const LITTLE = 1 / 4;

/** Where a fold stops to keep snapshots: once a stride, where there is none yet. They shorten the next way, no more. */
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
      if (positions.get(name) !== position || !isDue(name, position, last.get(name) ?? 0, every)) continue;
      // Where little changed, the one before serves nearly as well; but not where all between would be read to see that.
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
