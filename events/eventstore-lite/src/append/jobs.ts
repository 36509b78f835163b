import type { Limits } from "../limits.ts";
import type { Appended, Lease } from "../store.ts";
import { encodeBatch, type Operation, type Request } from "./messages.ts";
import type { PreparedAppend } from "./prepare.ts";

/** One caller's append, from its acceptance to its verdict. */
export interface AppendJob {
  readonly kind: "append";
  readonly append: PreparedAppend;
  resolve(appended: Appended | Promise<Appended>): void;
  reject(error: Error): void;
}

export interface OperationJob {
  readonly kind: "operation";
  readonly operation: Operation;
  resolve(lease: Lease | undefined): void;
  reject(error: Error): void;
}

export type Job = AppendJob | OperationJob;

export function isClosing(job: Job): boolean {
  return job.kind === "operation" && job.operation.kind === "close";
}

/** What a job counts for against the limits of the queue. In two numbers, since an object would be made of each four times. */
export function eventsOf(job: Job): number {
  if (job.kind === "append") return job.append.count;
  // Closing has to be possible with a full queue too.
  return job.operation.kind === "close" ? 0 : 1;
}

/** UTF-16 units. A snapshot may be large, and callers of the log must not be refused for it: who saves them waits for each. */
export function charsOf(job: Job): number {
  return job.kind === "append" ? job.append.chars : 0;
}

type BatchLimits = Pick<Limits, "batchEvents" | "batchChars">;

/** How many of the first jobs go into one request: one operation, or appends up to the size of a batch. */
function countNext(jobs: readonly Job[], { batchEvents, batchChars }: BatchLimits): number {
  let events = 0;
  let chars = 0;
  let count = 0;
  for (const job of jobs) {
    if (job.kind === "operation") return Math.max(1, count);
    events += job.append.count;
    chars += job.append.chars;
    if (events > batchEvents || chars > batchChars) return Math.max(1, count);
    count += 1;
  }
  return count;
}

/** `jobs` as {@link countNext} cuts them. */
export function encodeJobs(jobs: readonly Job[], nowMs: number, wantsHashes: boolean): Request {
  const appends: PreparedAppend[] = [];
  for (const job of jobs) {
    if (job.kind === "operation") return job.operation;
    appends.push(job.append);
  }
  return encodeBatch(nowMs, wantsHashes, appends);
}

/** What was accepted and not yet sent to the writer thread, in order. */
export interface Waiting {
  isEmpty(): boolean;
  events(): number;
  add(job: Job): void;
  /** Takes what goes into the next request. */
  next(): Job[];
  /**
   * Refuses all. A closing stays where it is, when `keepsClosing`: it goes out behind what was sent, so that the store is
   * not closed before all of that is settled. Answers what was refused.
   */
  drop(error: Error, keepsClosing: boolean): readonly Job[];
}

export function createWaiting(limits: BatchLimits): Waiting {
  let jobs: Job[] = [];
  let events = 0;
  return {
    isEmpty: () => jobs.length === 0,
    events: () => events,
    add(job) {
      jobs.push(job);
      events += eventsOf(job);
    },
    next() {
      const taken = jobs.splice(0, countNext(jobs, limits));
      for (const job of taken) events -= eventsOf(job);
      return taken;
    },
    drop(error, keepsClosing) {
      const isKept = (job: Job): boolean => keepsClosing && isClosing(job);
      const dropped = jobs.filter((job) => !isKept(job));
      jobs = jobs.filter(isKept);
      events = 0;
      for (const job of dropped) job.reject(error);
      return dropped;
    },
  };
}
