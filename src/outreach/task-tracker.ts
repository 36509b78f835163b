import type { HeldLease } from "../log/leases-and-roles.ts";
import { errorFields, type Logger } from "../platform/logger.ts";

interface TaskDeps {
  readonly lease: HeldLease;
  readonly logger: Logger;
}

export type BackgroundTasks = ReturnType<typeof createBackgroundTasks>;

/** Tracks background work that holds a lease, so that a stop of the service can end the work and wait for it. */
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
    /** Signal that aborts with the reason `stopped` when all background work must end. */
    stopping: stopping.signal,
    /** Makes a stop of the service wait for this promise too, for work that holds no lease yet. */
    track,
    /**
     * Starts background work, and releases its lease when the work ends. If it fails, logs the fault and resolves with
     * undefined.
     */
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
      // A trigger that began before the stop may have started a run meanwhile, so the check repeats.
      while (pending.size > 0) await Promise.allSettled(pending);
    },
  };
}
