/**
 * The contract of an event store. It shows nothing of the storage behind it,
 * so that a log can be copied from one store to another with its positions.
 */

import type { Awaitable } from "./awaitable.ts";

/** An event as its writer makes it. `data` and `meta` must survive JSON unchanged. */
export interface NewEvent {
  /** UUIDv7, made by the caller before the event is submitted. */
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  readonly meta: unknown;
}

/** An event as the log holds it. */
export type Recorded<E extends NewEvent> = E & {
  /** 1-based, gap-free over the whole log. */
  readonly position: number;
  readonly stream: string;
  /** 1-based, gap-free within the stream. */
  readonly version: number;
  /** ISO 8601 UTC with milliseconds; never runs backwards along the log. */
  readonly time: string;
  /** SHA-256 (64 hex digits) over the previous event's hash and this event's canonical bytes. */
  readonly hash: string;
};

/** The place and time at which an event was recorded. */
export type Place = Pick<Recorded<NewEvent>, "position" | "stream" | "version" | "time" | "hash">;

/**
 * The part of an event that a projection folds, without what only auditors need. Reading it is much faster than reading
 * the whole event.
 */
export type Folded<E extends NewEvent> = E extends NewEvent
  ? Pick<E, "type" | "data"> & Pick<Recorded<E>, "position" | "version" | "time">
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

/** Identifies an append that is repeated, and the request that it stands for. */
export interface IdempotencyKey {
  readonly key: string;
  /** Digest of the request; a repeat with another digest is refused with {@link KeyReused}. */
  readonly digest: string;
}

/** A repeat with the same `key` appends nothing and returns the first result, also after a restart. */
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
  /** The stream's version after it. */
  readonly version: number;
  /** True when `key` was known: nothing was appended now. */
  readonly repeated: boolean;
}

/** One transaction of appends. */
export interface Commit {
  readonly events: number;
  /** Its duration, fsync included. */
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
  /** Only events recorded at or before this time. */
  readonly until?: Date;
  readonly backwards?: boolean;
  readonly limit?: number;
}

/** A consumer's progress: it has processed the events of this log up to and including `position`, in this epoch. */
export interface Cursor {
  readonly store: string;
  readonly epoch: string;
  /** 0 before the first event. */
  readonly position: number;
}

/** How a continuation of a log began. A copy lacks the events that the original recorded later. */
export type BegunAs =
  /** There was no log before. */
  | "new"
  /** A copy made by `backup`. */
  | "backup"
  /** Events of another log. */
  | "import"
  /** A copy made by other means, which the log has noticed. */
  | "copy"
  /** A copy made by other means, as an operator has declared. */
  | "operator";

/** One continuation of a log. */
export interface Epoch {
  readonly id: string;
  /** The last position of the previous epoch. */
  readonly after: number;
  readonly begunAs: BegunAs;
}

/** An idempotency key and the append that used it. */
export interface StoredKey extends IdempotencyKey {
  /** Positions of the first and the last event of its append. */
  readonly first: number;
  readonly last: number;
  /** The stream's version after it. */
  readonly version: number;
}

/** A segment into which events of the log were moved. */
export interface ArchivedSegment {
  /** Name of the file. */
  readonly name: string;
  /** Size of the file. */
  readonly bytes: number;
  /** Positions of its first and last event. */
  readonly first: number;
  readonly last: number;
}

/**
 * `lost`: the log does not hold that event. `replaced`: another log is in this place, or this one continues in another
 * epoch.
 */
export type Presence = "same" | "lost" | "replaced";

export interface SubscribeQuery {
  readonly stream?: string;
  readonly types?: readonly string[];
  readonly from: number;
  readonly signal: AbortSignal;
}

export interface Head {
  /** 0 for an empty log. */
  readonly position: number;
  readonly hash: string;
  /** Undefined for an empty log. */
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
  /** Events whose links were checked. */
  readonly checked: number;
  readonly head: Head;
  /** The first position that does not fit, and why; absent when `ok`. */
  readonly fault?: { readonly position: number; readonly reason: string };
}

export interface Snapshot {
  /** Version of the code that made the state. */
  readonly version: number;
  /** Position of the last event that is folded in. */
  readonly position: number;
  readonly state: string;
}

/** A snapshot in a list, without its state. */
export interface SnapshotEntry extends Omit<Snapshot, "state"> {
  readonly name: string;
  /** Size of the state, as UTF-8. */
  readonly bytes: number;
}

/** A copy that was verified. */
export interface Backup {
  /** The head of the copy. */
  readonly head: Head;
  readonly bytes: number;
}

export interface Snapshots {
  /** Throws {@link SnapshotAhead} if the snapshot holds more than the log. */
  load(name: string): Promise<Snapshot | undefined>;
  /**
   * Replaces the snapshot of that name, unless the saved one has the same version and holds more. With `alsoAs`, saves
   * it under a second name in the same transaction.
   */
  save(name: string, snapshot: Snapshot, alsoAs?: string): Promise<void>;
  /** Lists the snapshots whose names begin with `prefix`, ordered by name. They may hold more than the log. */
  list(prefix: string): Promise<readonly SnapshotEntry[]>;
  /** Ignores unknown names. */
  remove(names: readonly string[]): Promise<void>;
}

export interface Lease {
  readonly name: string;
  readonly holder: string;
  /** Grows by one with each acquisition that is not a renewal, also by the same holder; use it as a {@link Fence}. */
  readonly token: number;
  readonly expiresAt: Date;
}

export interface Leases {
  /**
   * Takes or renews the lease for `ttlMs`; undefined while another holder has it. A lease with more than twice its time
   * left was taken under a clock that ran ahead, and does not count. `steal` takes it from a holder known to be dead.
   */
  acquire(name: string, options: { holder: string; ttlMs: number; steal?: boolean }): Promise<Lease | undefined>;
  /** Frees the lease; has no effect if another holder has taken it. */
  release(lease: Lease): Promise<void>;
  /** Returns the given leases that are held now, ordered by name. */
  list(names: readonly string[]): Promise<readonly Lease[]>;
}

/**
 * An append-only log in one total order.
 * Errors: {@link VersionConflict}, {@link KeyReused}, {@link LeaseLost}, {@link StoreOverloaded}, {@link StoreFull},
 * {@link AppendInDoubt}, {@link InvalidAppend}, {@link StoreClosed} (errors.ts).
 */
export interface EventStore<E extends NewEvent = NewEvent> extends AsyncDisposable {
  /** Identifies this log for its whole life; copies made by `backup` keep it. */
  readonly id: string;
  /** Identifies this continuation of the log; a copy made by `backup` begins a new one when it is first opened. */
  readonly epoch: string;
  /** All continuations of the log up to this one, oldest first. */
  readonly epochs: readonly string[];
  /** How this continuation began. */
  readonly begunAs: BegunAs;
  /** The continuations in `epochs`, with how each began. */
  readonly history: readonly Epoch[];
  /** Returns the cursor of a consumer that has processed all events up to `position`. */
  cursor(position: number): Cursor;
  /**
   * Returns the position at which a consumer resumes: `subscribe({ from: await store.after(cursor), signal })`. Rejects
   * with {@link CursorRefused} if this log does not hold what the consumer has seen, for example after a restore.
   */
  after(cursor: Cursor): Promise<number>;
  /**
   * Appends one or more events to one stream, atomically. Resolves only once they are durable (fsynced). A later append
   * may overtake this one while the codec waits for something.
   */
  append(stream: string, events: readonly E[], options?: AppendOptions): Promise<Appended>;
  read(query?: Query): AsyncIterable<Recorded<E>>;
  /** Like `read`, in batches, with only the fields that a fold needs. */
  readFolded(query?: Query): AsyncIterable<readonly Folded<E>[]>;
  /** Reads events as they were stored, neither upcast nor checked. The hashes cover this form. */
  readStored(query?: Query): AsyncIterable<Recorded<NewEvent>>;
  /**
   * Reads the canonical bytes of the events [from, to], in batches. The hash chain and the leaves of a Merkle tree
   * cover them: position, stream, version, id, type, time in ms, data and meta, one per line.
   */
  readCanonical(query: { readonly from: number; readonly to: number }): AsyncIterable<readonly Uint8Array[]>;
  /**
   * Reads the idempotency keys of appends that ended within [from, to], which scans all keys that the database holds
   * whole. A key that is archived meanwhile may come twice.
   */
  readKeys(query: { readonly from: number; readonly to: number }): AsyncIterable<readonly StoredKey[]>;
  /**
   * Yields every matching event from `from` on, in order, each once: first the stored ones, then new ones live, until
   * `signal` aborts.
   */
  subscribe(query: SubscribeQuery): AsyncIterable<Recorded<E>>;
  /** Like `subscribe`, with all available events at a time; never an empty batch. */
  subscribeBatches(query: SubscribeQuery): AsyncIterable<readonly Recorded<E>[]>;
  head(): Promise<Head>;
  /**
   * The clock that dates events and expires leases, in ms since 1970: the server's, or this machine's for a log in a
   * file. An event is never dated before its predecessor, even if this clock is behind it.
   */
  now(): Promise<number>;
  /**
   * Returns the newest version and position of one stream. A decision made on a state that reaches `position` may
   * expect `version`.
   */
  streamHead(stream: string): Promise<StreamHead>;
  /** The hash of one event; undefined if the log holds no event there, and 64 zeros for position 0. */
  hashAt(position: number): Promise<string | undefined>;
  /**
   * Checks if this is still the log that was opened, and holds that event. If so, and its server has changed (a
   * failover), the log notes its new place, so that no later opening takes it for a copy.
   */
  confirm(head: Pick<Head, "position" | "hash">): Promise<Presence>;
  /**
   * Recomputes the hash chain over [from, to], up to the log's end at the start, and names the first position that does
   * not fit. Other work continues meanwhile.
   */
  verify(options?: {
    from?: number;
    to?: number;
    /** The most threads to use; default: one for each core. */
    threads?: number;
    /** Gets the number of events found good so far; they are checked in no particular order. */
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
  /** Resolves (never rejects) with the fault after which this store acknowledges no more appends. */
  readonly failed: Promise<Error>;
  readonly snapshots: Snapshots;
  readonly leases: Leases;
}

/** An event as a codec passes it on to be written. */
export interface Encoded extends NewEvent {
  /** Work left to the writer thread, as JSON or other text without line breaks; never empty. */
  readonly transformInput?: string | undefined;
}

/**
 * Returns the JSON to store for an event, from its data's JSON and the `input` that its codec left to the writer
 * thread. It must equal `JSON.stringify`'s, because an import checks that. An error refuses the append with
 * {@link InvalidAppend}.
 */
export type WriterTransform = (data: string, input: string) => string;

/** An event that a codec decodes for a fold. */
export interface StoredData {
  readonly position: number;
  readonly type: string;
  readonly data: unknown;
  /** Not parsed, because most codecs only glance at it. */
  readonly meta: string;
}

/**
 * Converts and checks events on their way in and out, so that the store knows nothing of the domain. Takes many at a
 * time, so that keys, for example, are fetched once for all of them. Results keep the order and number of the events.
 */
export interface Codec<E extends NewEvent> {
  /**
   * Takes all events of one append; returns a promise only if it has to wait. Throws on an event that breaks its
   * schema. `isChecked` means that none does.
   */
  encode(events: readonly E[], isChecked?: boolean): Awaitable<readonly Encoded[]>;
  /**
   * Upcasts and checks stored events, in order. Throws on an unknown type or a broken schema; the store then passes the
   * events one by one, so that those before the fault are read.
   */
  decode(stored: readonly Recorded<NewEvent>[]): Awaitable<readonly Recorded<E>[]>;
  /**
   * Makes a subscriber's event from the appended one, since parsing its JSON costs as much as writing it. Undefined if
   * it must be decoded. Only for events that no code changes after the append.
   */
  recall?(event: E, place: Place): Recorded<E> | undefined;
  /** Changes once decoding gives different results; the events kept for subscribers are then decoded again. */
  revision?(): number;
  /** Like {@link Codec.decode}, for the data alone. */
  decodeData(stored: readonly StoredData[]): Awaitable<readonly unknown[]>;
}
