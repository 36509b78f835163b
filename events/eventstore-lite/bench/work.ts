import { compare, perSecond, type Bar, type Row } from "./measure.ts";
import { processorTimeOf, timeOfThreads } from "./processor-time.ts";

/** How fast events are made durable, and the processor time of each in two threads, in µs. */
export interface Work {
  readonly perSecond: number;
  readonly caller: number;
  readonly writer: number;
}

/** Like {@link perSecond}, with the processor time. */
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

function threads(): Pick<Work, "caller" | "writer"> {
  return { caller: processorTimeOf(process.pid).main, writer: timeOfThreads(process.pid, "Worker") };
}

export function compareRates(what: string, ours: readonly Work[], raw: readonly Work[], bar: Bar): Row {
  const rates = (work: readonly Work[]): readonly number[] => work.map(({ perSecond }) => perSecond);
  return compare(what, "/s", rates(ours), rates(raw), bar);
}

/**
 * Compares an event's processor time in each thread with that of inserting it. The ratio is meaningful on a busy
 * machine too.
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
