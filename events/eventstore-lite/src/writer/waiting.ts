import { StoreClosed } from "../errors.ts";
import { countNext, type Job, weightOf } from "./jobs.ts";

/** What was accepted and not yet sent to the writer thread, in order. */
export interface Waiting {
  isEmpty(): boolean;
  events(): number;
  add(job: Job): void;
  /** Takes what goes into the next request. */
  next(): Job[];
  /**
   * Refuses all with {@link StoreClosed}. A closing stays where it is, when `keepsClosing`: it goes out behind what was
   * sent, so that the store is not closed before all of that is settled.
   */
  drop(keepsClosing: boolean): void;
}

export function createWaiting(eventsMax: number): Waiting {
  let jobs: Job[] = [];
  let events = 0;
  return {
    isEmpty: () => jobs.length === 0,
    events: () => events,
    add(job) {
      jobs.push(job);
      events += weightOf(job).events;
    },
    next() {
      const taken = jobs.splice(0, countNext(jobs, eventsMax));
      for (const job of taken) events -= weightOf(job).events;
      return taken;
    },
    drop(keepsClosing) {
      const isKept = (job: Job): boolean => keepsClosing && job.kind === "operation" && job.operation.kind === "close";
      const dropped = jobs.filter((job) => !isKept(job));
      jobs = jobs.filter(isKept);
      events = 0;
      for (const job of dropped) job.reject(new StoreClosed());
    },
  };
}
