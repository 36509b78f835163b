import { StoreClosed } from "../../errors.ts";
import { nextTurn } from "../../next-turn.ts";
import type { Head, Verification } from "../../event-store-interface.ts";
import { openReader } from "../connections.ts";
import type { DatabaseReader } from "../read/database-reader.ts";
import { firstPosition } from "../read/position-bounds.ts";
import { readHead } from "../read/read-heads-snapshots-leases.ts";
import { createCheckRange } from "./check-range.ts";
import { checkInThreads, RANGE_EVENTS, type CheckJob } from "./worker-pool.ts";
import { findUnindexed, walkIndexes } from "./indexes.ts";
import type { Findings } from "./check-result-types.ts";

export interface VerifyOptions {
  readonly from?: number;
  readonly to?: number;
  /** Maximum number of threads to use; default: one for each core, up to a few. */
  readonly threads?: number;
  readonly onProgress?: (checked: number) => void;
  /** Head up to which the log is verified; default: the end of the log now. */
  readonly head?: Head;
}

/** Verifies the events in the database; those in the archive are verified by `segments/verify-archive.ts`. */
export interface Verifier {
  /**
   * Recomputes the chain over [from, to] and checks positions, versions and times; for the whole log also that the
   * indexes find every event. Only a head of the log that is kept elsewhere shows that its last events were cut off.
   */
  verify(options?: VerifyOptions): Promise<Verification>;
  /** Ends running verifications with {@link StoreClosed}. */
  close(): Promise<void>;
}

export function createVerifier(file: string, reader: DatabaseReader): Verifier {
  const closing = new AbortController();
  const running = new Set<Promise<Verification>>();

  async function verify({
    from = 1,
    to = Infinity,
    threads = Infinity,
    onProgress,
    head = readHead(reader),
  }: VerifyOptions): Promise<Verification> {
    const range = { first: Math.max(1, from), last: Math.min(to, head.position) };
    let checked = 0;
    const onChecked = (events: number): void => {
      checked += events;
      onProgress?.(checked);
    };
    const isWhole = range.first <= firstPosition(reader) && range.last === head.position;
    const check = range.last - range.first < RANGE_EVENTS ? checkHere : checkInThreads;
    const { event, index } = await check({ file, range, isWhole, threads, onChecked, signal: closing.signal });
    if (closing.signal.aborted) throw new StoreClosed();
    if (event !== undefined) return { ok: false, checked: event.position - range.first, head, fault: event };
    return index === undefined ? { ok: true, checked, head } : { ok: false, checked, head, fault: index };
  }

  return {
    async verify(options = {}) {
      const verification = verify(options);
      running.add(verification);
      try {
        return await verification;
      } finally {
        running.delete(verification);
      }
    },
    async close() {
      closing.abort();
      await Promise.allSettled(running);
    },
  };
}

/**
 * Checks a small number of events in this thread, which takes less time than starting another one. Each chunk is one
 * turn of the event loop.
 */
async function checkHere({ file, range, isWhole, onChecked, signal }: CheckJob): Promise<Findings> {
  const db = openReader(file);
  try {
    const chunks = createCheckRange(db)(range);
    for (;;) {
      const { done, value } = chunks.next();
      if (done === true) {
        const { fault, sums } = value;
        const isDue = isWhole && fault === undefined;
        const index = isDue ? findUnindexed(db, walkIndexes(db, range.last), sums, range.last) : undefined;
        return { event: fault, index };
      }
      onChecked(value);
      await nextTurn();
      if (signal.aborted) return { event: undefined, index: undefined };
    }
  } finally {
    db.close();
  }
}
