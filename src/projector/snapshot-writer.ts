import type { EventType, LogStore } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES, projectionOf, rewindOf, type ProjectionName } from "../../projections/all.ts";
import type { FoldedStates } from "../../projections/fold-states.ts";
import { isReadAlongLog, type Positions } from "./fold-range.ts";
import { isDue, pastName, thinPast, packState, type PackOptions } from "./past-snapshots.ts";

/**
 * Number of positions between two snapshots of one projection. After a start, at most some tens of milliseconds of
 * events are thus folded again.
 */
const SNAPSHOT_EVERY_POSITIONS = 20_000;

/**
 * Number of positions between two snapshots on a long catch-up, for projections whose events are read by type: few such
 * events lie between two snapshots, so folding them again is quick.
 */
const LONG_BY_TYPE_POSITIONS = 40_000;

/**
 * Number of positions between two snapshots on a long catch-up, for a projection whose present state can be rewound to
 * an earlier one ({@link rewindOf}). Its state takes long to encode, and few past snapshots of it are needed.
 */
const LONG_PUT_BACK_POSITIONS = 2_400_000;

/**
 * Number of positions between two turns of the snapshot writer. Each turn saves one projection, so that no turn encodes
 * more than one state.
 */
const TURN_POSITIONS = Math.ceil(SNAPSHOT_EVERY_POSITIONS / PROJECTION_NAMES.length);

/**
 * Number of positions after which even an unchanged state is saved. Otherwise the next start would read many events to
 * see that nothing changed.
 */
const UNCHANGED_EVERY_POSITIONS = 10 * SNAPSHOT_EVERY_POSITIONS;

/**
 * Saves snapshots of the states; some also stay as past snapshots. They only shorten the next start and the fold to a
 * moment, so a snapshot that cannot be saved (a full disk) stops nothing.
 */
export type SnapshotWriter = ReturnType<typeof createSnapshotWriter>;

export interface PastKept {
  /** Position of each projection's newest past snapshot: one that stays, so that past moments open fast. */
  readonly last: Positions;
  readonly every: number;
}

function lengthToSave(name: ProjectionName, isEnd: boolean): number {
  if (isEnd || isReadAlongLog(name)) return SNAPSHOT_EVERY_POSITIONS;
  return rewindOf(name) === undefined ? LONG_BY_TYPE_POSITIONS : LONG_PUT_BACK_POSITIONS;
}

/** Event types that replace states, and so make snapshots of the former states void. */
const REPLACING: readonly EventType[] = ["PersonForgotten", "ProjectionRebuilt"];

export interface SnapshotWriterOptions {
  readonly store: LogStore;
  readonly states: FoldedStates;
  /** Positions of the snapshots that the states were restored from. */
  readonly positions: Positions;
  readonly past: PastKept;
  /** Time for which a state is encoded before other work has its turn, in ms. */
  readonly sliceMs: number | undefined;
  /** Projections that are not folded yet, so that no snapshot of them is saved; default: none. */
  readonly late?: { readonly has: (name: ProjectionName) => boolean };
}

async function takeSnapshot(name: ProjectionName, position: number, state: unknown, options: PackOptions) {
  return { version: projectionOf(name).version, position, state: await packState(state, options) };
}

export function createSnapshotWriter(options: SnapshotWriterOptions) {
  const { store, states, positions, sliceMs, past, late = new Set() } = options;
  const { last: lastPast, every } = past;
  const saved = new Map([...positions].map(([name, position]) => [name, { position, folded: 0 }]));
  const readSaved = (name: ProjectionName) => saved.get(name) ?? { position: 0, folded: 0 };
  let dueAt = Math.min(...positions.values()) + TURN_POSITIONS;
  let next = 0;
  const writing = new Map<ProjectionName, Promise<void>>();
  let encoding: { readonly types: ReadonlySet<EventType>; readonly encoded: Promise<void> } | undefined;

  const write = async (name: ProjectionName, position: number, onEncoded: () => void): Promise<void> => {
    saved.set(name, { position, folded: states.foldedBy(name) });
    const isPast = isDue(name, states.get(name), { position, last: lastPast.get(name) ?? 0, every });
    const snapshot = await takeSnapshot(name, position, states.get(name), { sliceMs, onEncoded });
    if (!isPast) return store.snapshots.save(name, snapshot);
    lastPast.set(name, position);
    await store.snapshots.save(name, snapshot, pastName({ projection: name, position, since: position }));
    await thinPast(store, name, every);
  };

  const save = (name: ProjectionName, position: number): Promise<void> => {
    const { promise: encoded, resolve } = Promise.withResolvers<void>();
    const mine = { types: new Set([...projectionOf(name).types, ...REPLACING]), encoded };
    encoding = mine;
    const onEncoded = (): void => {
      // From here on the state may change, because it is encoded. If another save has begun to encode a state
      // meanwhile, `encoding` belongs to that save and stays.
      if (encoding === mine) encoding = undefined;
      resolve();
    };
    return write(name, position, onEncoded)
      .catch(() => {})
      .finally(onEncoded);
  };

  return {
    /** Log position at which the projector must next call `turn`, which may save the snapshot of one projection. */
    get dueAt(): number {
      return dueAt;
    },
    /**
     * Saves a snapshot of one projection in the background, if it is due and `isSaving` is true. All projections must
     * be at `position`.
     */
    turn(position: number, isSaving: boolean): void {
      dueAt = position + TURN_POSITIONS;
      if (!isSaving || encoding !== undefined) return;
      const name = PROJECTION_NAMES[next];
      next = (next + 1) % PROJECTION_NAMES.length;
      // While a slow disk still writes a snapshot of this projection, no second one is begun.
      if (name === undefined || writing.has(name) || late.has(name)) return;
      const { position: at, folded } = readSaved(name);
      if (states.foldedBy(name) === folded && position - at < UNCHANGED_EVERY_POSITIONS) return;
      const saving = save(name, position).finally(() => writing.delete(name));
      writing.set(name, saving);
    },
    /**
     * Returns a promise to await before an event of this type is folded, if that would change a state that is being
     * encoded; else undefined.
     */
    encoding: (type: EventType): Promise<void> | undefined =>
      encoding?.types.has(type) === true ? encoding.encoded : undefined,
    /**
     * Saves a snapshot of every projection that has advanced far since its last one, during a long catch-up or at its
     * end.
     */
    async saveLong(reached: Positions, isEnd: boolean): Promise<void> {
      for (const [name, position] of reached) {
        if (position - readSaved(name).position >= lengthToSave(name, isEnd)) await save(name, position);
      }
    },
    /** Saves snapshots of these projections now; their states must be at `position`. */
    async save(names: readonly ProjectionName[], position: number): Promise<void> {
      await Promise.all(writing.values());
      for (const name of names) await save(name, position);
    },
    /** Saves snapshots of all projections, so that the next start begins right there. */
    async saveAll(position: number): Promise<void> {
      await Promise.all(writing.values());
      const isDueNow = (name: ProjectionName) => !late.has(name) && readSaved(name).position < position;
      for (const name of PROJECTION_NAMES.filter(isDueNow)) await save(name, position);
    },
    /**
     * Notes that these projections' states were replaced: each is saved at its next turn, even if it folds no event
     * until then.
     */
    replaced(names: readonly ProjectionName[]): void {
      for (const name of names) saved.set(name, { ...readSaved(name), folded: -1 });
      dueAt = 0;
    },
    /** Makes the past snapshots of these projections void, because their states were replaced. */
    voidPast: (names: readonly ProjectionName[]): void => names.forEach((name) => lastPast.set(name, 0)),
  };
}
