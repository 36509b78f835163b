import { compare, perSecond, type Bar, type Row } from "./compare-contenders.ts";
import { processorTimeOf, timeOfThreads } from "./read-processor-time.ts";

/**
 * Result of measured appends: events made durable in a second, and the processor time for each event in the caller's
 * and the writer's thread, in µs.
 */
export interface Work {
  readonly perSecond: number;
  readonly caller: number;
  readonly writer: number;
}

/**
 * Runs `work` on `count` events. Measures its rate, like {@link perSecond}, and the processor time for each event of
 * the calling thread and of the writer thread.
 */
export async function workOf(count: number, work: () => unknown): Promise<Work> {
  const before = threads();
  const rate = await perSecond(count, work);
  const after = threads();
  return {
    perSecond: rate,
    caller: (after.caller - before.caller) / count,
    writer: (after.writer - before.writer) / count,
  };
}

function threads() {
  return { caller: processorTimeOf(process.pid).main, writer: timeOfThreads(process.pid, "Worker") };
}

export function compareRates(what: string, ours: readonly Work[], raw: readonly Work[], bar: Bar): Row {
  const rates = (work: readonly Work[]): readonly number[] => work.map(({ perSecond }) => perSecond);
  return compare(what, "/s", rates(ours), rates(raw), bar);
}

/**
 * Returns one row for each thread. A row compares the processor time of an appended event with that of a raw insert,
 * because this ratio is meaningful on a busy machine too.
 */
export function compareThreads(what: string, ours: readonly Work[], raw: readonly Work[]): readonly Row[] {
  const inserts = raw.map(({ caller }) => caller);
  const row = (thread: "caller" | "writer"): Row =>
    compare(
      `${what}, processor time of the ${thread}'s thread; limit: of raw inserts, same indexes`,
      "µs",
      ours.map((work) => work[thread]),
      inserts,
    );
  return [row("caller"), row("writer")];
}
