import type { FindArchivedKey } from "../segments/idempotency-keys.ts";
import { AppendInDoubt, StoreClosed, StoreUnavailable } from "../errors.ts";
import type { Limits } from "../limits.ts";
import type { Appended, Commit, Lease } from "../event-store-interface.ts";
import {
  type AppendJob,
  charsOf,
  createWaiting,
  encodeJobs,
  eventsOf,
  type Job,
  isClosing,
  type OperationJob,
  type Waiting,
} from "./batch-and-encode-waiting-jobs.ts";
import { type CompareKey, createCompareKey } from "./compare-archived-idempotency-key.ts";
import { createLoad } from "./queue-load.ts";
import type { AwayNotice, FaultReply, Operation, Reply, Request } from "./writer-messages.ts";
import type { PreparedAppend } from "./prepare-append.ts";
import { createStartPieces, type PieceOptions, type StartPieces } from "./send-in-pieces.ts";
import { countEvents, type DurableBatch, errorOf, settleBatch } from "./settle-batch.ts";

/**
 * Maximum number of requests that the writer thread has at a time: the one that it works on, and the next one, so that
 * it need not wait. A higher number would only make the batches smaller.
 */
const REQUESTS_SENT_MAX = 2;

/**
 * Minimum number of waiting events for which the next request is sent while the writer thread still works on a commit.
 * If fewer events wait, they are sent after that commit, with those that arrive until then.
 */
const AHEAD_EVENTS_MIN = 64;

/**
 * Time in ms after which an append with {@link AppendOptions.givesUpInDoubt} fails because the database server does not
 * answer.
 */
const DOUBT_MS = 8_000;

export interface QueueOptions extends PieceOptions {
  readonly limits: Limits;
  readonly send: (request: Request) => void;
  readonly onDurable: (batch: DurableBatch) => void;
  readonly onCommit: (commit: Commit) => void;
  readonly findArchivedKey: FindArchivedKey;
}

/**
 * Queue of work for the writer thread, first in, first out. Appends that arrive while the thread is busy become its
 * next transaction (group commit), so batches grow with the load, and no append waits for a timer.
 */
export interface Queue {
  append(append: PreparedAppend): Promise<Appended>;
  readonly startPieces: StartPieces;
  perform(operation: Operation): Promise<Lease | undefined>;
  onReply(reply: Reply): void;
  /**
   * The store calls this when the database goes away or is back. While it is away, sent requests stay unanswered and
   * new ones are refused.
   */
  onAway(notice: AwayNotice): void;
  /** The store calls this when the writer thread has died; the outcome of all requests sent to it is in doubt. */
  onCrash(error: Error): void;
  /** Closes the queue: accepts nothing more, settles the accepted jobs, and closes the writer's connection. */
  close(): Promise<void>;
  readonly failed: Promise<Error>;
}

export function createQueue(options: QueueOptions): Queue {
  const { limits, clock, send, isFollowed } = options;
  const waiting = createWaiting(limits);
  const sent: Job[][] = [];
  const failure = Promise.withResolvers<Error>();
  const load = createLoad(limits);
  let state: "open" | "closed" | "crashed" = "open";
  let pumpScheduled = false;
  const outage = createOutage(sent);

  // While the database is away, the queue accepts nothing but a close. The close is sent at once, and makes the writer
  // stop asking how the last batch ended.
  const maySend = (): boolean => !waiting.isEmpty() && (outage.isOn() || isWorthSending(sent.length, waiting));

  const isIdle = (): boolean => state === "open" && sent.length === 0 && waiting.isEmpty();

  function enqueue(job: Job): void {
    if (state !== "open") throw new StoreClosed();
    if (!isClosing(job)) outage.check();
    load.take(eventsOf(job), charsOf(job));
    waiting.add(job);
    if (pumpScheduled || !maySend()) return;
    pumpScheduled = true;
    // The sending is deferred to the end of this turn, so that all callers that are ready to append share the
    // transaction.
    queueMicrotask(pump);
  }

  function pump(): void {
    pumpScheduled = false;
    while (maySend()) {
      const jobs = waiting.next();
      sent.push(jobs);
      send(encodeJobs(jobs, clock(), isFollowed()));
    }
  }

  /** Rejects jobs with the error of their request. After a fatal fault, also drops the jobs that were not sent yet. */
  function fail(jobs: readonly Job[], error: Error, isFatal: boolean): void {
    for (const job of jobs) job.reject(error);
    if (!isFatal) return;
    if (state === "open") state = "closed";
    failure.resolve(error);
    waiting.drop(new StoreClosed(), state !== "crashed");
    pump();
  }

  const appendWhole = (append: PreparedAppend): Promise<Appended> =>
    new Promise((resolve, reject) => enqueue({ kind: "append", append, resolve, reject }));
  const settling = { ...options, compareKey: createCompareKey(options.findArchivedKey, appendWhole) };

  return {
    failed: failure.promise,
    append: (append) => append.pieces?.end(append) ?? appendWhole(append),
    startPieces: createStartPieces(options, isIdle, load, sent),
    perform: (operation) =>
      new Promise((resolve, reject) => enqueue({ kind: "operation", operation, resolve, reject })),
    onReply(reply) {
      const jobs = sent.shift() ?? [];
      // Sends the next request first, so that the thread works on it while the callers are answered.
      pump();
      for (const job of jobs) load.giveBack(eventsOf(job), charsOf(job));
      if (reply.kind === "fault") fail(jobs, errorOf(reply), reply.fault === "fatal" || reply.fault === "diverged");
      else settle(jobs, reply, settling);
    },
    onAway({ cause }) {
      const away = outage.notice(cause);
      if (away !== undefined) for (const job of waiting.drop(away, true)) load.giveBack(eventsOf(job), charsOf(job));
    },
    onCrash(error) {
      state = "crashed";
      fail(sent.splice(0).flat(), new AppendInDoubt(error), true);
    },
    close: () =>
      new Promise((resolve) => {
        // The store counts as closed even if the last checkpoint fails, because the next start makes that checkpoint.
        if (state === "crashed") return resolve();
        state = "open";
        enqueue({ kind: "operation", operation: { kind: "close" }, resolve: () => resolve(), reject: () => resolve() });
        state = "closed";
      }),
  };
}

/**
 * Creates the state of a database outage. During an outage, sent appends with `givesUpInDoubt` are rejected after
 * {@link DOUBT_MS}. Their jobs stay in `sent`, because the writer still replies to them.
 */
function createOutage(sent: readonly (readonly Job[])[]) {
  let error: StoreUnavailable | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const giveUp = (cause: Error): void => {
    for (const job of sent.flat()) {
      if (job.kind === "append" && job.append.givesUpInDoubt) job.reject(new AppendInDoubt(cause));
    }
  };

  return {
    isOn: () => error !== undefined,
    /** Throws {@link StoreUnavailable} while the database is away. */
    check(): void {
      if (error !== undefined) throw error;
    },
    /**
     * Notes that the database does not answer, for the reason `cause`, or that it answers again if `cause` is
     * undefined.
     */
    notice(cause: string | undefined): StoreUnavailable | undefined {
      clearTimeout(timer);
      error = cause === undefined ? undefined : new StoreUnavailable(new Error(cause));
      if (error !== undefined) timer = setTimeout(giveUp, DOUBT_MS, error).unref();
      return error;
    },
  };
}

function settle(
  jobs: readonly Job[],
  reply: Exclude<Reply, FaultReply>,
  { onDurable, onCommit, compareKey }: QueueOptions & { readonly compareKey: CompareKey },
): void {
  if (reply.kind === "batch") {
    const batch = settleBatch(jobs as AppendJob[], reply, compareKey);
    onDurable(batch);
    onCommit({ events: countEvents(batch), ms: reply.commitMs });
  } else for (const job of jobs as OperationJob[]) job.resolve(reply.lease);
}

function isWorthSending(requestsSent: number, waiting: Waiting): boolean {
  return requestsSent === 0 || (requestsSent < REQUESTS_SENT_MAX && waiting.events() >= AHEAD_EVENTS_MIN);
}
