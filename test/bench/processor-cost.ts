import { median } from "eventstore-lite/bench";

/** The cost of one operation. */
export interface Cost {
  /** Processor time of the measured thread, in µs. */
  readonly mainUs: number;
  /** Processor time of the process's other threads, which assist, compile and collect garbage, in µs. */
  readonly othersUs: number;
  /** Number of operations a second, by the wall clock. */
  readonly perSecond: number;
}

/** Measures the cost of one of the `count` operations that `work` performs. */
export async function costOf(count: number, work: () => unknown): Promise<Cost> {
  const before = { main: process.threadCpuUsage(), all: process.cpuUsage(), at: performance.now() };
  await work();
  const perSecond = count / ((performance.now() - before.at) / 1_000);
  const mainUs = sumOf(process.threadCpuUsage(before.main)) / count;
  return { mainUs, othersUs: sumOf(process.cpuUsage(before.all)) / count - mainUs, perSecond };
}

export function ratesOf(costs: readonly Cost[]): readonly number[] {
  return costs.map(({ perSecond }) => perSecond);
}

/**
 * Formats each contender's processor time for one event, as the median of several rounds. On a shared machine it varies
 * less than the number of events a second.
 */
export function describeCosts(contenders: Readonly<Record<string, readonly Cost[]>>): string {
  const texts = Object.entries(contenders).map(([name, costs]) => {
    const middle = (part: keyof Cost): string => median(costs.map((cost) => cost[part])).toFixed(2);
    return `${name} ${middle("mainUs")} on its thread, ${middle("othersUs")} on others`;
  });
  return `processor time of each event in µs: ${texts.join("; ")}`;
}

function sumOf({ user, system }: NodeJS.CpuUsage): number {
  return user + system;
}
