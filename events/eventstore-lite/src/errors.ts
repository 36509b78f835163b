/** The code of each error of the store, so that callers can map all errors in one table. */
export type StoreErrorCode =
  | "version_conflict"
  | "key_reused"
  | "lease_lost"
  | "overloaded"
  | "busy"
  | "full"
  | "in_doubt"
  | "unavailable"
  | "diverged"
  | "invalid_append"
  | "closed"
  | "owned"
  | "unusable"
  | "cursor_refused"
  | "snapshot_ahead"
  | "import_refused"
  | "target_taken"
  | "backup_failed"
  | "segment_damaged"
  | "checkpoint_refused"
  | "signing_key_refused"
  | "chain_broken";

/** The base of all errors that this package throws for its callers. */
export abstract class StoreError extends Error {
  abstract readonly code: StoreErrorCode;
}

/** True if `fault` is an error of the store with one of these codes. */
export function isStoreError(fault: unknown, ...codes: readonly StoreErrorCode[]): fault is StoreError {
  return fault instanceof StoreError && codes.includes(fault.code);
}

/** The stream was not at the expected version; `actual` is its version. */
export class VersionConflict extends StoreError {
  override readonly name = "VersionConflict";
  override readonly code = "version_conflict";
  readonly stream: string;
  readonly expected: string | number;
  readonly actual: number;
  constructor(stream: string, expected: string | number, actual: number) {
    super(`stream ${stream}: expected version ${expected}, found ${actual}`);
    this.stream = stream;
    this.expected = expected;
    this.actual = actual;
  }
}

/** The idempotency key was used for another request before. Nothing was appended. */
export class KeyReused extends StoreError {
  override readonly name = "KeyReused";
  override readonly code = "key_reused";
  constructor() {
    super("something else was appended under this idempotency key");
  }
}

/** The fence's lease expired or was taken by another holder: nothing was appended. */
export class LeaseLost extends StoreError {
  override readonly name = "LeaseLost";
  override readonly code = "lease_lost";
  constructor(lease: string) {
    super(`lease ${lease} is no longer held`);
  }
}

/** The append queue is at its limit, or the database is too slow. Nothing was appended; try again later. */
export class StoreOverloaded extends StoreError {
  override readonly name = "StoreOverloaded";
  override readonly code = "overloaded";
  constructor(reason = "the append queue is full") {
    super(reason);
  }
}

/**
 * The log cannot be opened now, because another process holds its write lock, restores a log or imports one. Try again
 * later.
 */
export class StoreBusy extends StoreError {
  override readonly name = "StoreBusy";
  override readonly code = "busy";
  constructor(reason = "another process is writing to the log and does not end: try again later") {
    super(reason);
  }
}

/** The disk is full. Nothing was appended; appends work again once there is room. */
export class StoreFull extends StoreError {
  override readonly name = "StoreFull";
  override readonly code = "full";
  constructor() {
    super("no space left for the log");
  }
}

/** The database server is away, or the log's file is no longer in its place. Nothing was appended; try again later. */
export class StoreUnavailable extends StoreError {
  override readonly name = "StoreUnavailable";
  override readonly code = "unavailable";
  constructor(cause: unknown) {
    super("the database of the log does not answer", { cause });
  }
}

/**
 * The log no longer holds what this store has seen: its server was replaced by one that lacked the newest events, or
 * another log was put there. The store stops, because readers of lost events may have acted on them.
 */
export class LogDiverged extends StoreError {
  override readonly name = "LogDiverged";
  override readonly code = "diverged";
  constructor(reason: string) {
    super(`the log is not what this store has seen of it: ${reason}`);
  }
}

/**
 * It is unknown if the events are durable; open and read the log to find out. A store on SQLite stops. With PostgreSQL,
 * the store was closed while the server was away, or the caller stopped waiting.
 */
export class AppendInDoubt extends StoreError {
  override readonly name = "AppendInDoubt";
  override readonly code = "in_doubt";
  constructor(cause: unknown) {
    super("the log could not confirm the append; reading the log decides", { cause });
  }
}

/** The append is invalid: it has no events, an event that is too large, or a name out of bounds. */
export class InvalidAppend extends StoreError {
  override readonly name = "InvalidAppend";
  override readonly code = "invalid_append";
}

/** The store was closed, or stopped after a fault. */
export class StoreClosed extends StoreError {
  override readonly name = "StoreClosed";
  override readonly code = "closed";
  constructor() {
    super("the store is closed");
  }
}

/** Another service owns this log. `holder` is that service's description of itself. */
export class StoreOwned extends StoreError {
  override readonly name = "StoreOwned";
  override readonly code = "owned";
  readonly holder: string;
  constructor(holder: string) {
    super(`another service owns this log: ${holder}`);
    this.holder = holder;
  }
}

/** The file cannot serve as a log: another application's database, a newer format, an SQLite that is too old. */
export class StoreUnusable extends StoreError {
  override readonly name = "StoreUnusable";
  override readonly code = "unusable";
}

/** The reason why a cursor does not fit a log. */
export type CursorRefusal = "other-store" | "beyond-head" | "unknown-epoch" | "epoch-ended";

/**
 * The cursor belongs to another log, or to a continuation of this one that was lost, for example by a restore from a
 * backup. A consumer that resumed by position alone would miss other events unnoticed.
 */
export class CursorRefused extends StoreError {
  override readonly name = "CursorRefused";
  override readonly code = "cursor_refused";
  readonly reason: CursorRefusal;
  constructor(reason: CursorRefusal, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** A snapshot holds more than the log, so the log has lost its end. */
export class SnapshotAhead extends StoreError {
  override readonly name = "SnapshotAhead";
  override readonly code = "snapshot_ahead";
  constructor(snapshot: string, position: number, head: number) {
    super(`the snapshot ${snapshot} is of position ${position}, but the log ends at ${head}: it has lost events`);
  }
}

/** An event to be imported does not fit; nothing was imported. */
export class ImportRefused extends StoreError {
  override readonly name = "ImportRefused";
  override readonly code = "import_refused";
  /** Position that the refused event was to get in the new log. */
  readonly position: number;
  constructor(position: number, reason: string) {
    super(`position ${position}: ${reason}`);
    this.position = position;
  }
}

/** The place of a new log, or of a copy, is already taken. Nothing was touched. */
export class TargetTaken extends StoreError {
  override readonly name = "TargetTaken";
  override readonly code = "target_taken";
}

/** The copy of the log failed its check and was not kept: there is no room for it, or the log itself is damaged. */
export class BackupFailed extends StoreError {
  override readonly name = "BackupFailed";
  override readonly code = "backup_failed";
}

/** The content of a sealed segment contradicts its header, or the segment before it. */
export class SegmentDamaged extends StoreError {
  override readonly name = "SegmentDamaged";
  override readonly code = "segment_damaged";
}

/** The log contradicts its hash chain at this position or before, so no root over its events proves anything. */
export class ChainBroken extends StoreError {
  override readonly name = "ChainBroken";
  override readonly code = "chain_broken";
  constructor(position: number) {
    super(`the log does not hold what its chain says, at position ${position} or before: verify it`);
  }
}

/** `malformed`: the text is no checkpoint; `signature`: the key has not signed it. */
export type CheckpointRefusal = "malformed" | "signature";

/** The checkpoint is malformed or not signed by the key, so it proves nothing. */
export class CheckpointRefused extends StoreError {
  override readonly name = "CheckpointRefused";
  override readonly code = "checkpoint_refused";
  readonly reason: CheckpointRefusal;
  constructor(reason: CheckpointRefusal, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The key of the checkpoints cannot be used: others can read it, or it is no Ed25519 key. */
export class SigningKeyRefused extends StoreError {
  override readonly name = "SigningKeyRefused";
  override readonly code = "signing_key_refused";
}
