import {
  AppendInDoubt,
  InvalidAppend,
  KeyReused,
  LeaseLost,
  LogDiverged,
  StoreClosed,
  StoreFull,
  StoreOverloaded,
  StoreUnavailable,
  VersionConflict,
} from "../errors.ts";
import type { Appended } from "../event-store-interface.ts";
import type { CompareKey } from "./compare-archived-idempotency-key.ts";
import type { AppendJob } from "./batch-and-encode-waiting-jobs.ts";
import {
  APPENDED,
  type BatchReply,
  CONFLICT,
  type FaultReply,
  KEY_ARCHIVED,
  KEY_REUSED,
  LEASE_LOST,
  REPEATED,
  UNFINISHED,
  VERDICT_FIELDS,
} from "./writer-messages.ts";
import type { PreparedAppend } from "./prepare-append.ts";

/** Appends that became durable in one transaction, in order of position. */
export interface DurableBatch {
  readonly timeMs: number;
  /** Hex hashes of all events of the batch, one after the other; empty if no subscriber needs them. */
  readonly hashes: string;
  readonly appends: readonly { readonly append: PreparedAppend; readonly appended: Appended }[];
}

export function countEvents({ appends }: DurableBatch): number {
  return appends.reduce((sum, { append }) => sum + append.count, 0);
}

/**
 * Settles each append of a batch by its verdict, and returns those that are new in the log. `compareKey` answers an
 * append whose key may be archived.
 */
export function settleBatch(
  jobs: readonly AppendJob[],
  { timeMs, hashes, verdicts, refusals }: BatchReply,
  compareKey: CompareKey,
): DurableBatch {
  const appends: { append: PreparedAppend; appended: Appended }[] = [];
  let at = 0;
  for (const job of jobs) {
    const code = verdicts[at];
    const first = verdicts[at + 1]!;
    const last = verdicts[at + 2]!;
    const version = verdicts[at + 3]!;
    at += VERDICT_FIELDS;
    const { stream, expected, lease } = job.append;
    if (code === APPENDED) {
      const appended = { first, last, version, repeated: false };
      appends.push({ append: job.append, appended });
      job.resolve(appended);
    } else if (code === REPEATED) {
      job.resolve({ first, last, version, repeated: true });
    } else if (code === CONFLICT) {
      // In this verdict, the first number is the stream's actual version.
      job.reject(new VersionConflict(stream, expected, first));
    } else if (code === KEY_REUSED) {
      job.reject(new KeyReused());
    } else if (code === KEY_ARCHIVED) {
      job.resolve(compareKey(job.append));
    } else if (code === UNFINISHED) {
      job.reject(new InvalidAppend(refusals[first] ?? "an event could not be finished"));
    } else if (code === LEASE_LOST) {
      job.reject(new LeaseLost(lease));
    }
  }
  return { timeMs, hashes, appends };
}

/** Converts the fault of a failed request to the error that its callers get. */
export function errorOf({ fault, cause }: FaultReply): Error {
  if (fault === "full") return new StoreFull();
  if (fault === "busy") return new StoreOverloaded(`the database was too slow, or locked: ${cause}`);
  if (fault === "unavailable") return new StoreUnavailable(new Error(cause));
  if (fault === "diverged") return new LogDiverged(cause);
  return fault === "stopped" ? new StoreClosed() : new AppendInDoubt(new Error(cause));
}
