import { median } from "eventstore-lite/bench/measure";

/** What doing one of many things takes. */
export interface Cost {
  /** Processor time of the thread that is asked, in µs. */
  readonly mainUs: number;
  /** Of this process's other threads, which help it, compile, and collect its garbage. */
  readonly othersUs: number;
  /** By the clock. */
  readonly perSecond: number;
}

/** What each of `count` things takes when `work` does them all. */
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

/** The medians of several rounds, in words: steadier than rates where others use the machine too. */
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
