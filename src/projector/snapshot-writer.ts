import type { EventType, LogStore } from "../../events/catalog.ts";
import { PROJECTION_NAMES, projectionOf, rewindOf, type ProjectionName } from "../../projections/all.ts";
import type { FoldedStates } from "../../projections/states.ts";
import { isReadAlongLog, type Positions } from "./fold-range.ts";
import { isDue, pastName, thinPast, packState, type PackOptions } from "./snapshots.ts";

/** Positions between two snapshots of one projection: bounds what a start has to fold again to some tens of ms. */
const SNAPSHOT_EVERY_POSITIONS = 20_000;

/** The same on a long catch-up for what is read by types: few of its events lie between. */
const LONG_BY_TYPE_POSITIONS = 120_000;

/** The same for the recipients, who take long to encode and are hardly kept of the past. */
const LONG_PUT_BACK_POSITIONS = 2_400_000;

/** The projections take turns, so that no turn encodes more than one state. */
const TURN_POSITIONS = Math.ceil(SNAPSHOT_EVERY_POSITIONS / PROJECTION_NAMES.length);

/** A state that nothing changed is saved this rarely: past it, the next start would read on for long to see just that. */
const UNCHANGED_EVERY_POSITIONS = 10 * SNAPSHOT_EVERY_POSITIONS;

/**
 * Keeps snapshots of the states; now and then one of them stays as one of the past, in the same bytes. They only shorten
 * the next start and the way to a moment, so that one which cannot be saved (a full disk) stops nothing.
 */
export type SnapshotWriter = ReturnType<typeof createSnapshotWriter>;

export interface PastKept {
  /** Of each projection the position of the last one. */
  readonly last: Positions;
  readonly every: number;
}

function lengthToSave(name: ProjectionName, isEnd: boolean): number {
  if (isEnd || isReadAlongLog(name)) return SNAPSHOT_EVERY_POSITIONS;
  return rewindOf(name) === undefined ? LONG_BY_TYPE_POSITIONS : LONG_PUT_BACK_POSITIONS;
}

/** After these the states are other ones, and what is made of the former is void. */
const REPLACING: readonly EventType[] = ["PersonForgotten", "ProjectionRebuilt"];

export interface SnapshotWriterOptions {
  readonly store: LogStore;
  readonly states: FoldedStates;
  /** Where the snapshots are that the states were made from. */
  readonly positions: Positions;
  readonly past: PastKept;
  /** How long a state is encoded at a time. */
  readonly sliceMs: number | undefined;
  /** Projections that are not folded yet, which are not saved here; default: none. */
  readonly late?: Pick<ReadonlySet<ProjectionName>, "has">;
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
      // It is written after that, while another one may be encoded already.
      if (encoding === mine) encoding = undefined;
      resolve();
    };
    return write(name, position, onEncoded)
      .catch(() => {})
      .finally(onEncoded);
  };

  return {
    /** Position at which `turn` is to be called next. */
    get dueAt(): number {
      return dueAt;
    },
    /** Saves one projection in the background, if it is its time and `isSaving`. All stand at `position`. */
    turn(position: number, isSaving: boolean): void {
      dueAt = position + TURN_POSITIONS;
      if (!isSaving || encoding !== undefined) return;
      const name = PROJECTION_NAMES[next];
      next = (next + 1) % PROJECTION_NAMES.length;
      // A slow disk is not given a second one to write.
      if (name === undefined || writing.has(name) || late.has(name)) return;
      const { position: at, folded } = readSaved(name);
      if (states.foldedBy(name) === folded && position - at < UNCHANGED_EVERY_POSITIONS) return;
      const saving = save(name, position).finally(() => writing.delete(name));
      writing.set(name, saving);
    },
    /** To be awaited before an event of this type is folded, which would change a state that is being encoded. */
    encoding: (type: EventType): Promise<void> | undefined =>
      encoding?.types.has(type) === true ? encoding.encoded : undefined,
    /** Saves every projection that came a long way since its last snapshot, on the way to a position or at its end. */
    async saveLong(reached: Positions, isEnd: boolean): Promise<void> {
      for (const [name, position] of reached) {
        if (position - readSaved(name).position >= lengthToSave(name, isEnd)) await save(name, position);
      }
    },
    /** Saves these at once; they stand at `position`. */
    async save(names: readonly ProjectionName[], position: number): Promise<void> {
      await Promise.all(writing.values());
      for (const name of names) await save(name, position);
    },
    /** Saves all, for the next start to begin right there. */
    async saveAll(position: number): Promise<void> {
      await Promise.all(writing.values());
      const isDueNow = (name: ProjectionName) => !late.has(name) && readSaved(name).position < position;
      for (const name of PROJECTION_NAMES.filter(isDueNow)) await save(name, position);
    },
    /** These states were replaced: each is saved at its next turn, whatever is folded until then. */
    replaced(names: readonly ProjectionName[]): void {
      for (const name of names) saved.set(name, { ...readSaved(name), folded: -1 });
      dueAt = 0;
    },
    /** Those of the past are void: the states are other ones now. */
    voidPast: (names: readonly ProjectionName[]): void => names.forEach((name) => lastPast.set(name, 0)),
  };
}
