import type { Folded } from "../../events/event-types-and-codec.ts";
import { deliveries, pendingOf, type ChannelState, type Deliveries } from "../../projections/deliveries.ts";
import { arrivedByName, type Lives } from "./killed-services.ts";
import type { NetworkRow } from "./delivery-network-table.ts";
import { faultsOfDispatch, faultsOfEndings, faultsOfStop } from "./delivery-rules.ts";
import type { FaultRow } from "./delivery-faults.ts";
import { logOf, recordsOf, type Ending, type Logged, type DispatchRecord } from "./delivery-records.ts";

/** Numbers of dispatches by their outcome. */
export interface Counts {
  readonly requested: number;
  readonly delivered: number;
  readonly inDoubt: number;
  readonly dead: number;
  readonly skipped: number;
  /** Number of dispatches that arrived more than once. */
  readonly doubled: number;
  /**
   * Number of dispatches that had arrived at the network but had no final outcome when the service was killed, summed
   * over all kills.
   */
  readonly cutOff: number;
  /** Number of dispatches without a final outcome. */
  readonly lost: number;
}

/** The outcome of all dispatches of one case. */
export interface Verdict extends Counts {
  /** The rules that were violated; empty if none was. */
  readonly faults: readonly string[];
}

export interface Evidence {
  readonly row: NetworkRow;
  readonly fault: FaultRow;
  readonly lives: Lives;
  readonly acknowledged: ReadonlySet<string>;
}

/** Compares what arrived at the network with the log. */
export async function judge({ row, fault, lives, acknowledged }: Evidence): Promise<Verdict> {
  const { world, kills } = lives;
  const log = await logOf(world);
  const all = recordsOf(log, row, { arrived: arrivedByName(row, world), kills });
  const counts = count(all);
  const ids = new Set(log.map(({ id }) => id));
  const lost = [...acknowledged].filter((id) => !ids.has(id));
  return {
    ...counts,
    faults: [
      ...lost.map((id) => `${id} was acknowledged and is not in the log`),
      ...faultsOfFold(counts, foldOf(log)[row.channel]),
      ...all.flatMap((record) => faultsOfDispatch(record, row)),
      ...faultsOfEndings(all, row, fault),
      ...(fault.endsBy === undefined ? [] : faultsOfStop(log, all, { row, endsBy: fault.endsBy, lives })),
    ],
  };
}

function foldOf(log: readonly Logged[]): Deliveries {
  return log.reduce((state, event) => deliveries.evolve(state, event as unknown as Folded), deliveries.initial());
}

/** Compares the counts with those of the deliveries projection, which must agree. Returns the differences. */
function faultsOfFold({ delivered, inDoubt, dead, skipped, lost }: Counts, state: ChannelState): string[] {
  const counted = [delivered, inDoubt, dead, skipped, lost].join();
  const folded = [state.dispatched, state.in_doubt, state.dead, state.skipped, pendingOf(state)].join();
  return counted === folded ? [] : [`the projection says ${folded} and not ${counted}`];
}

export function count(all: readonly DispatchRecord[]): Counts {
  const ended = (ending: Ending): number => all.filter(({ endings }) => endings[0] === ending).length;
  return {
    requested: all.length,
    delivered: ended("delivered"),
    inDoubt: ended("in doubt"),
    dead: ended("dead"),
    skipped: ended("skipped"),
    doubled: all.filter(({ arrived }) => arrived > 1).length,
    cutOff: all.reduce((sum, { cutOff }) => sum + cutOff, 0),
    lost: all.filter(({ endings }) => endings.length === 0).length,
  };
}
