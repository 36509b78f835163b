import { StoreClosed, StoreOverloaded, StoreUnavailable } from "../errors.ts";
import type { VerifyLive } from "../segments/log-archive.ts";
import type { Fault, Range } from "../sqlite/verify/check-result-types.ts";
import { runTask, TaskFailed } from "../thread-task.ts";
import { checkRange } from "./verify-event-range.ts";
import type { CheckOrder } from "./check-range-thread.ts";
import type { PostgresLogPlace } from "./detect-copied-or-replaced-log.ts";
import type { Reader } from "./database-reader.ts";

/**
 * Maximum number of events that are verified in this thread; for so few, another thread would take longer to start and
 * connect.
 */
const EVENTS_HERE_MAX = 4_096;

export interface Verifier {
  readonly verify: VerifyLive;
  /** Ends running verifications with {@link StoreClosed}. */
  close(): void;
}

/** Verifies the events in the database, in a separate thread, so that the service continues to answer. */
export function createVerifier(place: PostgresLogPlace, reader: Reader): Verifier {
  const closing = new AbortController();

  function check(range: Range, onProgress?: (checked: number) => void): Promise<Fault | undefined> {
    if (range.last - range.first < EVENTS_HERE_MAX) return checkRange(reader, range, onProgress);
    return checkInThread({ ...place, ...range }, closing.signal, onProgress);
  }

  return {
    async verify({ head, from = 1, to = Infinity, onProgress }) {
      const range = { first: Math.max(1, from), last: Math.min(to, head.position) };
      const fault = await check(range, onProgress);
      if (fault !== undefined) return { ok: false, checked: fault.position - range.first, head, fault };
      return { ok: true, checked: Math.max(0, range.last - range.first + 1), head };
    },
    close: () => closing.abort(new StoreClosed()),
  };
}

async function checkInThread(
  order: CheckOrder,
  signal: AbortSignal,
  onProgress: (checked: number) => void = () => {},
): Promise<Fault | undefined> {
  try {
    return await runTask(new URL("./check-range-thread.ts", import.meta.url), order, { onProgress, signal });
  } catch (error) {
    if (!(error instanceof TaskFailed)) throw error;
    if (error.code === "unavailable") throw new StoreUnavailable(error);
    if (error.code === "overloaded") throw new StoreOverloaded(error.message);
    throw error;
  }
}
