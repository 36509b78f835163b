/**
 * The contract of an event store. It shows nothing of the storage behind it,
 * so that a log can be copied from one store to another with its positions.
 */

/** An event as its writer makes it. `data` and `meta` must survive JSON unchanged. */
export interface NewEvent {
  /** UUIDv7, made by the caller before the event is submitted. */
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  readonly meta: unknown;
}

/** Position, stream, version, time and hash that the log gives to an event when it records the event. */
export interface Place {
  /** Position of the event in the log: counted from 1, without gaps. */
  readonly position: number;
  readonly stream: string;
  /** Version of the event in its stream: counted from 1, without gaps. */
  readonly version: number;
  /** Time at which the event was recorded, ISO 8601 UTC with milliseconds. It never runs backwards along the log. */
  readonly time: string;
  /** Hash of the event: SHA-256 (64 hex digits) over the previous event's hash and this event's canonical bytes. */
  readonly hash: string;
}

/** An event as the log holds it. */
export type Recorded<E extends NewEvent> = E & Place;

/**
 * The part of an event that a projection folds, without what only auditors need. Reading it is much faster than reading
 * the whole event.
 */
export type Folded<E extends NewEvent> = E extends NewEvent
  ? {
      readonly type: E["type"];
      readonly data: E["data"];
      readonly position: number;
      readonly version: number;
      readonly time: string;
    }
  : never;

/** `none`: the stream must be empty; `exists`: it must hold events; a number: its version must equal it (0 = empty). */
export type ExpectedVersion = "any" | "none" | "exists" | number;

/**
 * Proves that the caller holds a lease. The append is refused with {@link LeaseLost} if the lease has expired or
 * another holder has taken it.
 */
export interface Fence {
  readonly lease: string;
  readonly token: number;
}

/** Key under which an append may be repeated, and a digest of the request that caused the append. */
export interface IdempotencyKey {
  readonly key: string;
  /** Digest of the request; a repeat with another digest is refused with {@link KeyReused}. */
  readonly digest: string;
}

/**
 * Conditions and options of an append. A repeat with the same `key` appends nothing and returns the first result, also
 * after a restart.
 */
export interface AppendOptions extends Partial<IdempotencyKey> {
  readonly expected?: ExpectedVersion;
  /** True if the caller made sure that the events fit their schemas, so that the codec need not check them. */
  readonly isChecked?: boolean;
  /**
   * Rejects with {@link AppendInDoubt} some seconds after PostgreSQL has gone away during the append, which may be in
   * the log. Default: waits until the outcome is known.
   */
  readonly givesUpInDoubt?: boolean;
  readonly fence?: Fence;
}

export interface Appended {
  /** Position of the first event of this append. */
  readonly first: number;
  readonly last: number;
  /** Version of the stream after the append. */
  readonly version: number;
  /** True if the idempotency key was used before, so that nothing was appended now. */
  readonly repeated: boolean;
}

/** One transaction of appends. */
export interface Commit {
  readonly events: number;
  /** Duration of the transaction in ms, fsync included. */
  readonly ms: number;
}

export interface Query {
  readonly stream?: string;
  readonly types?: readonly string[];
  /** Scans the log and skips other types instead of using an index; faster if most of the log is of these types. */
  readonly alongLog?: boolean;
  /** First position, inclusive (default 1). */
  readonly from?: number;
  /** Last position, inclusive (default the head). */
  readonly to?: number;
  /** Latest time; only events recorded at or before it are read. */
  readonly until?: Date;
  readonly backwards?: boolean;
  readonly limit?: number;
}

/** A consumer's progress: it has processed the events of this log up to and including `position`, in this epoch. */
export interface Cursor {
  readonly store: string;
  readonly epoch: string;
  /** Position of the last processed event; 0 before the first one. */
  readonly position: number;
}

/** How a continuation of a log began. A copy lacks the events that the original recorded later. */
export type BegunAs =
  /** Log that began empty: there was no log before. */
  | "new"
  /** Log that began as a copy made by `backup`. */
  | "backup"
  /** Log that began with the events of another log. */
  | "import"
  /**
   * Log that began as a copy made without this package's `backup`, such as a copy of its files. A program that opened
   * the copy detected this.
   */
  | "copy"
  /** Log that began as a copy made by other means, as an operator has declared. */
  | "operator";

/** One continuation of a log, between two restores, imports or copies. */
export interface Epoch {
  readonly id: string;
  /** Last position of the previous epoch; the events of this epoch follow it. */
  readonly after: number;
  readonly begunAs: BegunAs;
}

/** An idempotency key and the append that used it. */
export interface StoredKey extends IdempotencyKey {
  /** Position of the first event of the append that used the key. */
  readonly first: number;
  /** Position of the last event of the append that used the key. */
  readonly last: number;
  /** Version of the stream after the append that used the key. */
  readonly version: number;
}

/** A segment into which events of the log were moved. */
export interface ArchivedSegment {
  /** Name of the segment's file. */
  readonly name: string;
  /** Size of the segment's file, in bytes. */
  readonly bytes: number;
  /** Position of the segment's first event. */
  readonly first: number;
  /** Position of the segment's last event. */
  readonly last: number;
}

/**
 * Result of looking for a log and an event of it. `lost`: the log does not hold the event. `replaced`: another log is
 * in its place, or the log continues in another epoch.
 */
export type Presence = "same" | "lost" | "replaced";

export interface SubscribeQuery {
  readonly stream?: string;
  readonly types?: readonly string[];
  readonly from: number;
  readonly signal: AbortSignal;
}

/** Position and hash of an event in a log. By the hash chain, the hash also covers all events before this one. */
export interface ChainPoint {
  /** Position of the last event in the chain; 0 if the chain has no event. */
  readonly position: number;
  /** The event's hash; 64 zeros for position 0. */
  readonly hash: string;
}

/** The end of a log. */
export interface Head extends ChainPoint {
  /** Time of the last event; undefined for an empty log. */
  readonly time: string | undefined;
}

/** The newest event of one stream. */
export interface StreamHead {
  /** The stream's version, for use as the expected version; 0 for an empty stream. */
  readonly version: number;
  /** The event's position in the log; 0 for an empty stream. */
  readonly position: number;
}

export interface Verification {
  readonly ok: boolean;
  /** Number of events whose hashes were checked. */
  readonly checked: number;
  readonly head: Head;
  /** First position that does not fit the hash chain, and the reason; absent if `ok`. */
  readonly fault?: { readonly position: number; readonly reason: string };
}

export interface Snapshot {
  /** Version of the code that made the snapshot's state. */
  readonly version: number;
  /** Position of the last event that the snapshot's state includes. */
  readonly position: number;
  readonly state: string;
}

/** A snapshot in a list, without its state. */
export interface SnapshotEntry extends Omit<Snapshot, "state"> {
  readonly name: string;
  /** Size of the snapshot's state in bytes of UTF-8. */
  readonly bytes: number;
}

/** Result of a backup: a copy of the log that was verified. */
export interface Backup {
  /** Head of the copy. */
  readonly head: Head;
  readonly bytes: number;
}

export interface Snapshots {
  /** Loads a snapshot by its name. Throws {@link SnapshotAhead} if the snapshot holds more than the log. */
  load(name: string): Promise<Snapshot | undefined>;
  /**
   * Replaces the snapshot of that name, unless the saved one has the same version and reaches a later position. With
   * `alsoAs`, saves it under a second name in the same transaction.
   */
  save(name: string, snapshot: Snapshot, alsoAs?: string): Promise<void>;
  /**
   * Lists the snapshots whose names begin with `prefix`, ordered by name. Also lists snapshots whose position is after
   * the log's end, for which `load` throws {@link SnapshotAhead}.
   */
  list(prefix: string): Promise<readonly SnapshotEntry[]>;
  /** Removes snapshots by their names; ignores unknown names. */
  remove(names: readonly string[]): Promise<void>;
}

export interface Lease {
  readonly name: string;
  readonly holder: string;
  /**
   * Fencing token of the lease, for a {@link Fence}. It grows by one with each acquisition that is not a renewal, even
   * by the same holder.
   */
  readonly token: number;
  readonly expiresAt: Date;
}

export interface Leases {
  /**
   * Takes or renews the lease for `ttlMs`; undefined while another holder has it. A lease with more than twice its
   * duration left is ignored, because it was taken while the clock ran ahead. `steal` takes it from a holder known to
   * be dead.
   */
  acquire(name: string, options: { holder: string; ttlMs: number; steal?: boolean }): Promise<Lease | undefined>;
  /** Frees the lease; has no effect if another holder has taken it. */
  release(lease: Lease): Promise<void>;
  /** Returns the given leases that are held now, ordered by name. */
  list(names: readonly string[]): Promise<readonly Lease[]>;
}

/**
 * Identity of a log, its epochs (a copy of a log begins a new epoch when it is first opened), and the cursors from
 * which consumers resume.
 */
export interface LogHistory {
  /** Identifies this log for its whole life; copies made by `backup` keep it. */
  readonly id: string;
  /** Identifies this continuation of the log; a copy made by `backup` begins a new one when it is first opened. */
  readonly epoch: string;
  /** All continuations of the log up to this one, oldest first. */
  readonly epochs: readonly string[];
  /** How this continuation began. */
  readonly begunAs: BegunAs;
  /**
   * Every epoch of the log up to the present one, oldest first, with the reason why it began: a new log, a restored
   * backup, an import or a copy.
   */
  readonly history: readonly Epoch[];
  /** Returns the cursor of a consumer that has processed all events up to `position`. */
  cursor(position: number): Cursor;
  /**
   * Returns the position at which a consumer resumes: `subscribe({ from: await store.after(cursor), signal })`. Rejects
   * with {@link CursorRefused} if this log does not hold what the consumer has seen, for example after a restore.
   */
  after(cursor: Cursor): Promise<number>;
}

/** Reads what a log holds. */
export interface LogReading<E extends NewEvent = NewEvent> {
  read(query?: Query): AsyncIterable<Recorded<E>>;
  /** Yields the events that `read` yields, in batches, with only the fields that a fold needs. */
  readFolded(query?: Query): AsyncIterable<readonly Folded<E>[]>;
  /** Reads events as they were stored, neither upcast nor checked. The hash chain covers the events in this form. */
  readStored(query?: Query): AsyncIterable<Recorded<NewEvent>>;
  /**
   * Reads the canonical bytes of the events [from, to], in batches. The hash chain and the leaves of a Merkle tree
   * cover them: position, stream, version, id, type, time in ms, data and meta, one per line.
   */
  readCanonical(query: { readonly from: number; readonly to: number }): AsyncIterable<readonly Uint8Array[]>;
  /**
   * Reads the idempotency keys of appends whose last position is within [from, to], also archived ones. The search
   * scans all keys that are not archived. A key that is archived during the scan may come twice.
   */
  readKeys(query: { readonly from: number; readonly to: number }): AsyncIterable<readonly StoredKey[]>;
  head(): Promise<Head>;
  /**
   * Returns the newest version and position of one stream. A caller whose state includes all events up to `position`
   * can pass `version` as the expected version of its append.
   */
  streamHead(stream: string): Promise<StreamHead>;
  /** The hash of one event; undefined if the log holds no event there, and 64 zeros for position 0. */
  hashAt(position: number): Promise<string | undefined>;
}

/**
 * An append-only log in one total order.
 * Errors: {@link VersionConflict}, {@link KeyReused}, {@link LeaseLost}, {@link StoreOverloaded}, {@link StoreFull},
 * {@link AppendInDoubt}, {@link InvalidAppend}, {@link StoreClosed} (errors.ts).
 */
export interface EventStore<E extends NewEvent = NewEvent> extends LogHistory, LogReading<E>, AsyncDisposable {
  /**
   * Appends one or more events to one stream, atomically. Resolves only once they are durable (fsynced). A later append
   * may overtake this one while the codec waits for something.
   */
  append(stream: string, events: readonly E[], options?: AppendOptions): Promise<Appended>;
  /**
   * Yields every matching event from `from` on, in order, each once: first the stored ones, then new ones live, until
   * `signal` aborts.
   */
  subscribe(query: SubscribeQuery): AsyncIterable<Recorded<E>>;
  /** Yields the events that `subscribe` yields, but all that are available at a time; never an empty batch. */
  subscribeBatches(query: SubscribeQuery): AsyncIterable<readonly Recorded<E>[]>;
  /**
   * The clock that dates events and expires leases, in ms since 1970: the server's, or this machine's for a log in a
   * file. An event is never dated before its predecessor, even if this clock is behind it.
   */
  now(): Promise<number>;
  /**
   * Checks if this is still the log that was opened, and still holds the event of `head`. If so, and a failover has
   * changed its server, the log records its new place, so that no later opening takes the log for a copy.
   */
  confirm(head: ChainPoint): Promise<Presence>;
  /**
   * Recomputes the hash chain over [from, to], at most up to the event that is the log's last one when the call begins,
   * and returns the first position that does not fit. Other work continues meanwhile.
   */
  verify(options?: {
    from?: number;
    to?: number;
    /** Maximum number of threads that verify; default: one for each core. */
    threads?: number;
    /**
     * The verification calls this with the number of events found good so far; it checks them in no particular order.
     */
    onProgress?: (checked: number) => void;
  }): Promise<Verification>;
  /**
   * Writes a consistent copy of the live log to a new file, which gets its name only once it is verified and fsynced.
   * Throws {@link TargetTaken} or {@link BackupFailed}.
   */
  backup(file: string, options?: { onProgress?: (checked: number) => void }): Promise<Backup>;
  /**
   * Moves the oldest events into sealed segments, where all readers still find them. Yields each segment once only the
   * segment holds its events. Ending the iteration stops the work; the next call continues it.
   */
  archive(options: {
    /** The last position to move; the newest event always stays. */
    readonly to: number;
    /** True if events that do not fill a segment stay in the database. */
    readonly fullOnly?: boolean;
  }): AsyncIterable<ArchivedSegment>;
  /** The segments into which events were moved, in the order of their positions. */
  archived(): Promise<readonly ArchivedSegment[]>;
  /** Promise of the fault after which this store acknowledges no more appends; never rejects. */
  readonly failed: Promise<Error>;
  readonly snapshots: Snapshots;
  readonly leases: Leases;
}
