import { errorFields } from "../platform/logger.ts";
import type { OutreachContext } from "./context.ts";
import type { RunLease } from "./lease.ts";

export type BackgroundTasks = ReturnType<typeof createBackgroundTasks>;

/** What goes on in the background under a lease of its own, so that a stop can end it and wait for it. */
export function createBackgroundTasks({ logger }: OutreachContext) {
  const leases = new Set<RunLease>();
  const pending = new Set<Promise<unknown>>();
  const stopping = new AbortController();
  const { signal } = stopping;

  const track = <T>(work: Promise<T>): Promise<T> => {
    pending.add(work);
    const forget = (): unknown => pending.delete(work);
    work.then(forget, forget);
    return work;
  };

  return {
    /** Aborts when all work has to end. */
    signal,
    stopped: () => signal.aborted,
    /** Lets a stop wait for work that holds no lease yet. */
    track,
    /** Does the work and releases the lease; a fault is logged and answered as undefined. */
    start<T>(what: string, lease: RunLease, work: () => Promise<T>): Promise<T | undefined> {
      leases.add(lease);
      if (signal.aborted) lease.end("stopped");
      const end = (async () => {
        try {
          return await work();
        } catch (fault) {
          logger.error(`${what} failed`, errorFields(fault));
          return undefined;
        } finally {
          leases.delete(lease);
          await lease[Symbol.asyncDispose]();
        }
      })();
      return track(end);
    },
    async stop(): Promise<void> {
      stopping.abort();
      for (const lease of leases) lease.end("stopped");
      // A trigger that was under way may have started a run meanwhile.
      while (pending.size > 0) await Promise.allSettled(pending);
    },
  };
}
