import type { LogStore } from "../../events/event-types-and-codec.ts";
import type { ProjectionName } from "../../projections/all.ts";
import type { FoldedStates } from "../../projections/fold-states.ts";
import { ServiceError } from "../platform/service-error.ts";
import { createTimeSlices } from "../platform/work-in-time-slices.ts";
import { type CatchUp, catchUpStates, isReadAlongLog, type Positions, stretches } from "./fold-range.ts";
import type { SnapshotWriter } from "./snapshot-writer.ts";

/**
 * Projections that are far behind the log when a service starts, because they have no snapshot, or one of another
 * version.
 */
export interface Late {
  readonly states: FoldedStates;
  /** Position that each late projection has reached. A projection that has caught up is removed. */
  readonly positions: Positions;
  readonly snapshotWriter: SnapshotWriter;
}

/** Error: a state cannot be read yet, because its projection is still being folded from the log. Passes by itself. */
export class ProjectionFolding extends ServiceError<"busy"> {
  override readonly name = "ProjectionFolding";
  readonly projection: ProjectionName;
  /** Share of the log that the projection has folded, 0 to 1. */
  readonly share: number;
  constructor(projection: ProjectionName, share: number) {
    super("busy", `The projection ${projection} is being folded from the log: ${formatShare(share)} done`);
    this.projection = projection;
    this.share = share;
  }
}

/** Formats a share in whole percent, rounded down, so that 100 % is not shown before it is true. */
export function formatShare(share: number): string {
  return `${Math.floor(share * 100)} %`;
}

/**
 * Number of positions behind the others at which a late projection joins them. The other projections then wait some
 * milliseconds while the late one folds these events.
 */
const JOIN_POSITIONS = 2_000;

export interface FoldBesideOptions {
  readonly store: LogStore;
  /** Signal that ends the folding of late projections, between two batches of events. */
  readonly signal: AbortSignal;
  readonly sliceMs: number | undefined;
  /** Returns the position of the projections that follow the log. */
  readonly position: () => number;
  /** Runs `work` while the projections that follow the log stand still. */
  readonly whileStill: (work: () => Promise<void>) => Promise<void>;
  /**
   * Hands over the states of late projections that have caught up. From then on they follow the log with the others.
   */
  readonly takeOver: (names: readonly ProjectionName[], states: FoldedStates) => void;
  /**
   * Called each time a group of late projections has caught up with the log. A late projection was far behind the log
   * when the service started.
   */
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
   * Removes projections from the list of those that are still folded in the background, because the projector has their
   * states now. Discards the states kept here, and resolves the promises of callers that wait for these projections.
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
    /**
     * Folds the late projections. Resolves once all have caught up, or `signal` has aborted. It may be called again
     * after a failure.
     */
    async run(): Promise<void> {
      // Folds the projections of rare events first, which takes little time. Runs and pages need their states, so these
      // do not wait until all clicks were read.
      const { along = [], byType = [] } = Object.groupBy(states.names, (name) =>
        isReadAlongLog(name) ? "along" : "byType",
      );
      for (const group of [byType, along]) await foldGroup(group);
    },
    /** Throws {@link ProjectionFolding} while the projection is late, so that no caller reads its state. */
    refuse(name: ProjectionName): void {
      if (positions.has(name)) throw new ProjectionFolding(name, readShare(name));
    },
    isLate: (name: ProjectionName): boolean => positions.has(name),
    /** Returns the late projections, each with the share of the log that it has folded. */
    shares: (): ReadonlyMap<ProjectionName, number> =>
      new Map([...positions.keys()].map((name) => [name, readShare(name)])),
    /** Resolves once none of these projections is late. */
    async until(names: readonly ProjectionName[]): Promise<void> {
      for (const name of names) await folded.get(name)?.promise;
    },
    /**
     * Halts the folding of late projections while `replace` runs. The projections that `replace` returns have caught up
     * by it and are no longer late.
     */
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

/** Folds these late projections up to `to`. Each keeps the position that it reached, even after a failure. */
async function catchUp(
  store: LogStore,
  { states, positions, snapshotWriter }: Late,
  names: readonly ProjectionName[],
  range: { readonly to: number; readonly slices?: CatchUp["slices"]; readonly signal?: CatchUp["signal"] },
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
