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

/** How many of the first jobs go into one request: one operation, or appends up to the size of a batch. */
export function countNext(jobs: readonly Job[], eventsMax: number): number {
  let events = 0;
  for (const [index, job] of jobs.entries()) {
    if (job.kind === "operation") return Math.max(1, index);
    events += job.append.count;
    if (events > eventsMax) return Math.max(1, index);
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
