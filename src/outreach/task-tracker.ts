import type { HeldLease } from "../log/lease.ts";
import { errorFields, type Logger } from "../platform/logger.ts";

interface TaskDeps {
  readonly lease: HeldLease;
  readonly logger: Logger;
}

export type BackgroundTasks = ReturnType<typeof createBackgroundTasks>;

/** What goes on in the background under a lease of its own, so that a stop can end it and wait for it. */
export function createBackgroundTasks() {
  const pending = new Set<Promise<unknown>>();
  const stopping = new AbortController();

  const track = <T>(work: Promise<T>): Promise<T> => {
    pending.add(work);
    const forget = (): unknown => pending.delete(work);
    work.then(forget, forget);
    return work;
  };

  return {
    /** Aborts when all work has to end, as a run then does: `stopped`. */
    stopping: stopping.signal,
    /** Lets a stop wait for work that holds no lease yet. */
    track,
    /** Does the work and gives the lease back; a fault is logged and answered as undefined. */
    start<T>(what: string, { lease, logger }: TaskDeps, work: () => Promise<T>): Promise<T | undefined> {
      const done = async (): Promise<T | undefined> => {
        await using _held = lease;
        try {
          return await work();
        } catch (fault) {
          logger.error(`${what} failed`, errorFields(fault));
          return undefined;
        }
      };
      return track(done());
    },
    async stop(): Promise<void> {
      stopping.abort("stopped");
      // A trigger that was under way may have started a run meanwhile.
      while (pending.size > 0) await Promise.allSettled(pending);
    },
  };
}
