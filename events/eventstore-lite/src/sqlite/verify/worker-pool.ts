import { availableParallelism } from "node:os";
import type { IndexWalk } from "./indexes.ts";
import type { Fault, Findings, Range } from "./check-result-types.ts";
import { type CheckThread, startCheckThread } from "./start-thread.ts";
import { addAllTo, newSums } from "./index-sums.ts";

/**
 * Maximum number of threads that verify. More would wait for the disk and for each other, and a service that runs at
 * the same time needs its core too.
 */
const THREADS_MAX = 8;

/**
 * Number of events that a thread checks as one part: enough for its cache of versions to help, few enough that all
 * threads end together.
 */
export const RANGE_EVENTS = 32_768;

/** A check of the events in a database. */
export interface CheckJob {
  readonly file: string;
  readonly range: Range;
  /** True if the range is the whole log, so that the indexes are checked too. */
  readonly isWhole: boolean;
  /** Maximum number of threads to use. */
  readonly threads: number;
  readonly onChecked: (events: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Checks a range in up to `threads` threads, at most one for each core; each takes the next part when it has done one.
 * Ends soon once `signal` aborts, without having checked all.
 */
export async function checkInThreads({
  file,
  range,
  isWhole,
  threads: threadsMax,
  onChecked,
  signal,
}: CheckJob): Promise<Findings> {
  const parts = split(range);
  const stop = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const stopAll = (): void => void Atomics.store(stop, 0, 1);
  signal.addEventListener("abort", stopAll);
  const faults: Fault[] = [];
  const sums = newSums();
  let walk: Promise<IndexWalk> | undefined;

  async function work(thread: CheckThread): Promise<void> {
    if (isWhole && walk === undefined) await (walk = thread.walk(range));
    // Threads take the parts in order. When one finds a fault, all earlier parts are already being checked, and these
    // checks are finished.
    while (faults.length === 0 && !signal.aborted) {
      const { value: part } = parts.next();
      if (part === undefined) return;
      const checked = await thread.check(part, onChecked);
      if (checked?.fault !== undefined) faults.push(checked.fault);
      if (checked !== undefined) addAllTo(sums, checked.sums);
    }
  }

  const threads = Array.from({ length: Math.min(threadsMax, threadsFor(range)) }, () =>
    startCheckThread({ file, stop }),
  );
  try {
    await Promise.all(threads.map(work));
    const [event] = faults.sort((a, b) => a.position - b.position);
    const walked = await walk;
    if (walked === undefined || event !== undefined || signal.aborted) return { event, index: undefined };
    return { event, index: await threads[0]?.compare({ walk: walked, sums, last: range.last }) };
  } finally {
    stopAll();
    signal.removeEventListener("abort", stopAll);
    await Promise.all(threads.map((thread) => thread.end()));
  }
}

function threadsFor({ first, last }: Range): number {
  return Math.min(availableParallelism(), THREADS_MAX, Math.ceil((last - first + 1) / RANGE_EVENTS));
}

function* split({ first, last }: Range): Generator<Range, undefined> {
  for (let low = first; low <= last; low += RANGE_EVENTS) {
    yield { first: low, last: Math.min(last, low + RANGE_EVENTS - 1) };
  }
  return undefined;
}
