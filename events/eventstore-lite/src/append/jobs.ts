import type { Limits } from "../limits.ts";
import type { Appended, Lease } from "../store.ts";
import { encodeBatch, type Operation, type Request } from "./messages.ts";
import type { PreparedAppend } from "./prepare.ts";

/** One caller's append, from its acceptance to its verdict. */
export interface AppendJob {
  readonly kind: "append";
  readonly append: PreparedAppend;
  resolve(appended: Appended): void;
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

/** What a job counts for against the limits of the queue. */
export interface Weight {
  readonly events: number;
  readonly chars: number;
}

export function weightOf(job: Job): Weight {
  if (job.kind === "append") return { events: job.append.count, chars: job.append.text.length };
  const { operation } = job;
  // Closing has to be possible with a full queue too.
  if (operation.kind === "close") return { events: 0, chars: 0 };
  // A snapshot may be large, and callers of the log must not be refused for it: who saves them waits for each.
  return { events: 1, chars: 0 };
}

type BatchLimits = Pick<Limits, "batchEvents" | "batchChars">;

/** How many of the first jobs go into one request: one operation, or appends up to the size of a batch. */
export function countNext(jobs: readonly Job[], { batchEvents, batchChars }: BatchLimits): number {
  let events = 0;
  let chars = 0;
  for (const [index, job] of jobs.entries()) {
    if (job.kind === "operation") return Math.max(1, index);
    events += job.append.count;
    chars += job.append.text.length;
    if (events > batchEvents || chars > batchChars) return Math.max(1, index);
  }
  return jobs.length;
}

/** `jobs` as {@link countNext} cuts them. */
export function encodeJobs(jobs: readonly Job[], nowMs: number, wantsHashes: boolean): Request {
  const texts: string[] = [];
  for (const job of jobs) {
    if (job.kind === "operation") return job.operation;
    texts.push(job.append.text);
  }
  return encodeBatch(nowMs, wantsHashes, texts);
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
      events += weightOf(job).events;
    },
    next() {
      const taken = jobs.splice(0, countNext(jobs, limits));
      for (const job of taken) events -= weightOf(job).events;
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
