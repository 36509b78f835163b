import type { Limits } from "../limits.ts";
import type { Appended, Lease } from "../event-store-interface.ts";
import { encodeBatch, type Operation, type Request } from "./writer-messages.ts";
import type { PreparedAppend } from "./prepare-append.ts";

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

/**
 * Size of a queued job in events, for the limits of the queue. Its characters are counted separately: an object with
 * both numbers would be allocated four times for each job.
 */
export function eventsOf(job: Job): number {
  if (job.kind === "append") return job.append.count;
  // A close must be possible even if the queue is full.
  return job.operation.kind === "close" ? 0 : 1;
}

/**
 * Size of a queued job in UTF-16 units. Snapshots count as 0, because they may be large, and must not make the queue
 * refuse appends. They cannot pile up, because a projection waits until its snapshot is saved.
 */
export function charsOf(job: Job): number {
  return job.kind === "append" ? job.append.chars : 0;
}

/** Returns how many of the first jobs go into one request: one operation, or appends up to the size of a batch. */
function countNext(jobs: readonly Job[], { batchEvents, batchChars }: Limits): number {
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

/** Encodes the jobs of one request, as {@link countNext} counted them. */
export function encodeJobs(jobs: readonly Job[], nowMs: number, wantsHashes: boolean): Request {
  const appends: PreparedAppend[] = [];
  for (const job of jobs) {
    if (job.kind === "operation") return job.operation;
    appends.push(job.append);
  }
  return encodeBatch(nowMs, wantsHashes, appends);
}

/** Jobs that were accepted and not yet sent to the writer thread, in order. */
export interface Waiting {
  isEmpty(): boolean;
  events(): number;
  add(job: Job): void;
  /** Removes and returns the jobs of the next request. */
  next(): Job[];
  /**
   * Rejects and returns all jobs. With `keepsClosing`, a close stays queued and is sent last, so that the store closes
   * only after all sent requests are settled.
   */
  drop(error: Error, keepsClosing: boolean): readonly Job[];
}

export function createWaiting(limits: Limits): Waiting {
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
