import type { DatabaseSync } from "node:sqlite";
import type { FaultReply, Operation, Piece, Reply, Request } from "../../append/writer-messages.ts";
import { createRecordSegment } from "../archive-tables.ts";
import { type ArchivedKeys, createArchivedKeys } from "../archived-idempotency-keys.ts";
import { faultOf } from "../classify-errors.ts";
import { createBoundaries, createTransaction } from "../transaction.ts";
import { createBatchWriter } from "./batch.ts";
import type { TransformAppend } from "../../append/writer-transform.ts";
import { createLeaseTable, type LeaseTable } from "./leases.ts";
import { createWritePiece } from "./write-pieces.ts";

/** Executes the store's requests that write to the log; answers each once its changes are durable. */
export interface Writer {
  answer(request: Request): Reply;
  /** Writes a piece of a large append; returns undefined until its last piece. */
  answerPiece(piece: Piece): Reply | undefined;
}

function prepareSnapshots(db: DatabaseSync) {
  return {
    upsertSnapshot: db.prepare(
      `INSERT INTO snapshots (name, version, position, state) VALUES (?, ?, ?, ?)
       ON CONFLICT (name) DO UPDATE SET version = excluded.version, position = excluded.position, state = excluded.state
       WHERE version <> excluded.version OR position <= excluded.position`,
    ),
    removeSnapshot: db.prepare("DELETE FROM snapshots WHERE name = ?"),
  };
}

/** Performs operations that are no appends; runs inside a transaction. */
function createPerform(
  db: DatabaseSync,
  leases: LeaseTable,
  archivedKeys: ArchivedKeys,
): (operation: Exclude<Operation, { kind: "close" }>) => Reply {
  const { upsertSnapshot, removeSnapshot } = prepareSnapshots(db);
  const recordSegment = createRecordSegment(db);
  return (operation) => {
    switch (operation.kind) {
      case "saveSnapshot": {
        const { version, position, state } = operation.snapshot;
        for (const name of operation.names) upsertSnapshot.run(name, version, position, state);
        return { kind: "done" };
      }
      case "removeSnapshots": {
        for (const name of operation.names) removeSnapshot.run(name);
        return { kind: "done" };
      }
      case "acquireLease": {
        const lease = leases.acquire(operation);
        return lease ? { kind: "done", lease } : { kind: "done" };
      }
      case "recordSegment": {
        recordSegment(operation.file);
        return { kind: "done" };
      }
      case "recordKeys": {
        archivedKeys.record(operation.last, operation.keys);
        return { kind: "done" };
      }
      default:
        leases.release(operation.name, operation.token);
        return { kind: "done" };
    }
  };
}

/** Creates the writer of a log. `requireFiles` throws once the files of `db` are no longer in their place. */
export function createWriter(db: DatabaseSync, transform: TransformAppend, requireFiles = (): void => {}): Writer {
  const boundaries = createBoundaries(db);
  const transaction = createTransaction(boundaries);
  const leases = createLeaseTable(db);
  const archivedKeys = createArchivedKeys(db);
  const batches = createBatchWriter(db, leases, archivedKeys, transform);
  const perform = createPerform(db, leases, archivedKeys);
  // Reason why the writer has stopped. After a failed fsync, nothing may be acknowledged, not even a write that seems
  // to succeed.
  let stoppedBy: string | undefined;

  function close(): Reply {
    try {
      // A writer that stopped makes no checkpoint: after a failed fsync it could make durable what was answered as in
      // doubt.
      if (stoppedBy === undefined) db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } finally {
      db.close();
    }
    return { kind: "done" };
  }

  function write(text: string): Reply {
    const startedAt = performance.now();
    const batch = transaction(() => batches.write(text));
    return { ...batch, commitMs: performance.now() - startedAt };
  }

  /** Returns the result of `work`, or a fault if it throws. */
  function attempt<Answer>(work: () => Answer): Answer | Reply {
    try {
      return work();
    } catch (error) {
      batches.forget();
      const fault = faultOf(error);
      const cause = error instanceof Error ? error.message : String(error);
      if (fault === "fatal") stoppedBy = cause;
      return { kind: "fault", fault, cause };
    }
  }

  function refuseLostFiles(): FaultReply | undefined {
    try {
      requireFiles();
      return undefined;
    } catch (error) {
      // In the middle of an append in pieces the writer ignores missing files, because the last piece still has to end
      // the transaction. The next request reports them.
      return db.isTransaction ? undefined : { kind: "fault", fault: "unavailable", cause: String(error) };
    }
  }

  function attemptUnlessStopped<Answer>(work: () => Answer): Answer | Reply {
    if (stoppedBy !== undefined) return { kind: "fault", fault: "stopped", cause: stoppedBy };
    return refuseLostFiles() ?? attempt(work);
  }

  return {
    answer(request) {
      if (typeof request === "string") return attemptUnlessStopped(() => write(request));
      return request.kind === "close"
        ? attempt(close)
        : attemptUnlessStopped(() => transaction(() => perform(request)));
    },
    answerPiece: createWritePiece(boundaries, batches, attemptUnlessStopped),
  };
}
