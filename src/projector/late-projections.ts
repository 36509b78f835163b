import type { LogStore } from "../../events/catalog.ts";
import type { ProjectionName } from "../../projections/all.ts";
import type { FoldedStates } from "../../projections/states.ts";
import { ServiceError } from "../platform/service-error.ts";
import { createTimeSlices } from "../platform/time-slices.ts";
import { type CatchUp, catchUpStates, isReadAlongLog, type Positions, stretches } from "./fold-range.ts";
import type { SnapshotWriter } from "./snapshot-writer.ts";

/** Projections that are far behind the log at a start, without a snapshot or with one of another version. */
export interface Late {
  readonly states: FoldedStates;
  /** The position of each; one that has caught up is removed. */
  readonly positions: Positions;
  readonly snapshotWriter: SnapshotWriter;
}

/** A state cannot be read yet, because its projection is still being folded from the log. Ends by itself. */
export class ProjectionFolding extends ServiceError<"busy"> {
  override readonly name = "ProjectionFolding";
  readonly projection: ProjectionName;
  /** Folded share of the log, 0 to 1. */
  readonly share: number;
  constructor(projection: ProjectionName, share: number) {
    super("busy", `The projection ${projection} is being folded from the log: ${formatShare(share)} done`);
    this.projection = projection;
    this.share = share;
  }
}

/** Whole percent, rounded down, so that 100 % is not shown before it is true. */
export function formatShare(share: number): string {
  return `${Math.floor(share * 100)} %`;
}

/** Distance from the others at which the last positions are folded while the others wait: some milliseconds. */
const JOIN_POSITIONS = 2_000;

export interface FoldBesideOptions {
  readonly store: LogStore;
  /** Ends the work between two batches of events. */
  readonly signal: AbortSignal;
  readonly sliceMs: number | undefined;
  /** The position of the other projections. */
  readonly position: () => number;
  /** Runs `work` while the other projections stand still. */
  readonly whileStill: (work: () => Promise<void>) => Promise<void>;
  /**
   * Hands over the states of projections that have caught up with the others. From then on they follow the log with
   * them.
   */
  readonly takeOver: (names: readonly ProjectionName[], states: FoldedStates) => void;
  /** Called when projections are no longer late. */
  readonly onCaughtUp: () => void;
}

export type FoldBeside = ReturnType<typeof createFoldBeside>;

/** Folds late projections in slices while the others follow the log, and then lets them follow it too. */
export function createFoldBeside(late: Late, options: FoldBesideOptions) {
  const { states, positions } = late;
  const { store, signal, sliceMs, position, whileStill, takeOver, onCaughtUp } = options;
  const folded = new Map(states.names.map((name) => [name, Promise.withResolvers<void>()]));
  const slices = createTimeSlices(sliceMs);
  let pass: Promise<void> = Promise.resolve();
  let interrupted = new AbortController();
  const halt = { until: undefined as Promise<void> | undefined };

  const readShare = (name: ProjectionName): number =>
    Math.min(1, (positions.get(name) ?? Infinity) / Math.max(1, position()));

  /**
   * Ends the lateness of projections whose states the projector has now. Drops the copies here, and wakes those who
   * wait for them.
   */
  const leave = (names: readonly ProjectionName[]): void => {
    for (const name of names) {
      if (!positions.delete(name)) continue;
      states.replace(name, undefined);
      folded.get(name)?.resolve();
    }
    onCaughtUp();
  };

  const foldGroup = async (group: readonly ProjectionName[]): Promise<void> => {
    for (;;) {
      while (halt.until !== undefined) await halt.until;
      const names = group.filter((name) => positions.has(name));
      if (names.length === 0 || signal.aborted) return;
      interrupted = new AbortController();
      const yielding = { slices, signal: AbortSignal.any([signal, interrupted.signal]) };
      pass = catchUp(store, late, names, { to: position(), ...yielding });
      await pass;
      const reached = Math.min(...names.map((name) => positions.get(name) ?? Infinity));
      if (signal.aborted || position() - reached > JOIN_POSITIONS) continue;
      await whileStill(async () => {
        const rest = names.filter((name) => positions.has(name));
        if (rest.length === 0 || signal.aborted) return;
        await catchUp(store, late, rest, { to: position() });
        takeOver(rest, states);
        leave(rest);
      });
    }
  };

  return {
    /** Resolves once all are folded, or `signal` has aborted. It may be called again after a failure. */
    async run(): Promise<void> {
      // Few events concern most of them: the states that runs and pages need are there long before the clicks are read.
      const { along = [], byType = [] } = Object.groupBy(states.names, (name) =>
        isReadAlongLog(name) ? "along" : "byType",
      );
      for (const group of [byType, along]) await foldGroup(group);
    },
    /** Throws {@link ProjectionFolding} while the projection is late. */
    refuse(name: ProjectionName): void {
      if (positions.has(name)) throw new ProjectionFolding(name, readShare(name));
    },
    isLate: (name: ProjectionName): boolean => positions.has(name),
    /** The late projections, each with the share of the log that it has folded. */
    shares: (): ReadonlyMap<ProjectionName, number> =>
      new Map([...positions.keys()].map((name) => [name, readShare(name)])),
    /** Resolves once these projections are folded. */
    async until(names: readonly ProjectionName[]): Promise<void> {
      for (const name of names) await folded.get(name)?.promise;
    },
    /** Halts the work during `replace`, which returns the projections that it has folded by other means. */
    async whileHalted(replace: () => Promise<readonly ProjectionName[]>): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      halt.until = promise;
      interrupted.abort();
      await pass.catch(() => {});
      try {
        leave(await replace());
      } finally {
        halt.until = undefined;
        resolve();
      }
    },
  };
}

/** Folds these projections up to `to`. Each keeps the position that it reached, even after a failure. */
async function catchUp(
  store: LogStore,
  { states, positions, snapshotWriter }: Late,
  names: readonly ProjectionName[],
  range: Pick<CatchUp, "to" | "slices" | "signal">,
): Promise<void> {
  const own: Positions = new Map(names.map((name) => [name, positions.get(name) ?? 0]));
  await catchUpStates(store, { names, part: states.part }, own, {
    ...range,
    stops: stretches(Math.min(...own.values()), range.to),
    onStop: (stop) => snapshotWriter.saveLong(own, stop === range.to),
    onProgress() {
      for (const [name, reached] of own) positions.set(name, reached);
    },
  });
}
