/** The interface of an event store, its errors, and the store on SQLite. */
export { andThen, type Awaitable } from "./value-or-promise.ts";
export type { Codec, Encoded, WriterTransform } from "./codec.ts";
export { isStoreError, LeaseLost, StoreClosed, StoreError, VersionConflict } from "./errors.ts";
export type { ExaminedLog } from "./sqlite/read-format-and-newest-events.ts";
export { importSqliteLog } from "./sqlite/import/import-log.ts";
export { maintainSqliteLog } from "./sqlite/offline-maintenance.ts";
export { openSqliteStore } from "./sqlite/open.ts";
export type {
  Appended,
  AppendOptions,
  Commit,
  EventStore,
  Fence,
  Folded,
  Head,
  IdempotencyKey,
  Lease,
  NewEvent,
  Query,
  Recorded,
  Snapshot,
  SnapshotEntry,
  Snapshots,
} from "./event-store-interface.ts";
