import type { SegmentRecorder } from "../segments/move-events-into-segments.ts";
import { andThen, type Awaitable } from "../value-or-promise.ts";
import type { Limits } from "../limits.ts";
import type { Codec } from "../codec.ts";
import type { EventStore, Leases, NewEvent, Snapshots } from "../event-store-interface.ts";
import { prepareAppend } from "./prepare-append.ts";
import type { Queue } from "./queue.ts";

/**
 * Creates a store's `append`. The function is not async, because a second promise for each append would cost time: it
 * turns errors that the checks throw into rejections itself.
 */
export function createAppend<E extends NewEvent>(
  queue: Queue,
  codec: Codec<E>,
  limits: Limits,
): EventStore<E>["append"] {
  return (stream, events, options = {}) =>
    attempt(() => andThen(prepareAppend(stream, events, options, codec, limits, queue.startPieces), queue.append));
}

interface SnapshotWriter {
  readonly save: Snapshots["save"];
  readonly remove: Snapshots["remove"];
}

/**
 * Creates the part of a store that saves and removes snapshots. It sends these changes through the queue, in order with
 * appends.
 */
export function createSnapshotWriter(queue: Queue): SnapshotWriter {
  return {
    async save(name, snapshot, alsoAs) {
      const names = alsoAs === undefined ? [name] : [name, alsoAs];
      await queue.perform({ kind: "saveSnapshot", names, snapshot });
    },
    async remove(names) {
      if (names.length > 0) await queue.perform({ kind: "removeSnapshots", names });
    },
  };
}

/**
 * Records segments through the queue, so that the archived events are removed from the database in one transaction
 * between two transactions of appends.
 */
export function createSegmentRecorder(queue: Queue): SegmentRecorder {
  return {
    async record(file) {
      await queue.perform({ kind: "recordSegment", file });
    },
    async recordKeys(last, keys) {
      await queue.perform({ kind: "recordKeys", last, keys });
    },
  };
}

interface LeaseWriter {
  readonly acquire: Leases["acquire"];
  readonly release: Leases["release"];
}

export function createLeaseWriter(queue: Queue, clock: () => number): LeaseWriter {
  return {
    acquire: (name, { holder, ttlMs, steal = false }) =>
      queue.perform({ kind: "acquireLease", name, holder, ttlMs, steal, nowMs: clock() }),
    async release({ name, token }) {
      await queue.perform({ kind: "releaseLease", name, token });
    },
  };
}

/** Turns an error that `work` throws synchronously into a rejection. */
export function attempt<Result>(work: () => Awaitable<Result>): Promise<Result> {
  try {
    return Promise.resolve(work());
  } catch (error) {
    return Promise.reject(error);
  }
}
