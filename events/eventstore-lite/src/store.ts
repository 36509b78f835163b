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

/** Where and when an event was recorded. */
export type Place = Pick<Recorded<NewEvent>, "position" | "stream" | "version" | "time" | "hash">;

/** What a projection folds of an event: all but what auditors need. Reading this is much faster than the whole event. */
export type Folded<E extends NewEvent> = E extends NewEvent
  ? Pick<E, "type" | "data"> & Pick<Recorded<E>, "position" | "version" | "time">
  : never;

/** `none`: the stream is empty; `exists`: it is not; a number: its version is that (0 = empty). */
export type ExpectedVersion = "any" | "none" | "exists" | number;

/** Proof of holding a lease: the append is refused with {@link LeaseLost} when another took it meanwhile. */
export interface Fence {
  readonly lease: string;
  readonly token: number;
}

/** Under what an append is known again, and what was asked under it. */
export interface IdempotencyKey {
  readonly key: string;
  /** Of what was asked; a repeat that asks for something else is refused with {@link KeyReused}. */
  readonly digest: string;
}

/**
 * `key`: a repeat with the same one appends nothing and gives the first result, also after a restart. `isChecked`: the caller
 * who made the events knows that they fit their schemas, and the codec need not look again. `givesUpInDoubt`: rejects with
 * {@link AppendInDoubt} some seconds after PostgreSQL has gone away while the append was on its way, which may be in the
 * log; default: waits until it is known.
 */
export interface AppendOptions extends Partial<IdempotencyKey> {
  readonly expected?: ExpectedVersion;
  readonly isChecked?: boolean;
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
  /** How long it took, its fsync included. */
  readonly ms: number;
}

export interface Query {
  readonly stream?: string;
  readonly types?: readonly string[];
  /** Most of the log is of these types: it is read along, leaving out the rest, which is faster then than to ask an index. */
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

/** How far a consumer is: up to and including `position`, in that log, in that of its epochs. */
export interface Cursor {
  readonly store: string;
  readonly epoch: string;
  /** 0 before the first event. */
  readonly position: number;
}

/**
 * `new`: there was nothing before. `backup`: a copy made by `backup`; `import`: events of another log; `copy`: a copy made
 * by other means, which the log has noticed; `operator`: the same, which an operator has said. What the log recorded since
 * is not in this one.
 */
export type BegunAs = "new" | "backup" | "import" | "copy" | "operator";

/** One continuation of a log. */
export interface Epoch {
  readonly id: string;
  /** The last position of the epoch before. */
  readonly after: number;
  readonly begunAs: BegunAs;
}

/** What an idempotency key was used for. */
export interface StoredKey extends IdempotencyKey {
  /** Positions of the first and the last event of its append. */
  readonly first: number;
  readonly last: number;
  /** The stream's version after it. */
  readonly version: number;
}

/** A segment into which events of the log were moved. */
export interface ArchivedSegment {
  /** Of its file. */
  readonly name: string;
  readonly bytes: number;
  /** Positions of its first and last event. */
  readonly first: number;
  readonly last: number;
}

/** `lost`: the log does not hold that event. `replaced`: another log is there, or this one went on in another epoch. */
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
  /** The stream's version, to be named as the expected one; 0 for an empty stream. */
  readonly version: number;
  /** Where in the log that event is; 0 for an empty stream. */
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
  /** Position up to and including which events are folded in. */
  readonly position: number;
  readonly state: string;
}

/** What is listed of a snapshot: all but its state. */
export interface SnapshotEntry extends Omit<Snapshot, "state"> {
  readonly name: string;
  /** Of its state, as UTF-8. */
  readonly bytes: number;
}

/** A copy that was found whole. */
export interface Backup {
  /** Of the copy. */
  readonly head: Head;
  readonly bytes: number;
}

export interface Snapshots {
  /** Throws {@link SnapshotAhead} when the snapshot holds more than the log. */
  load(name: string): Promise<Snapshot | undefined>;
  /**
   * Replaces what was saved under that name, unless that is of the same version and holds more; `alsoAs`: under that
   * one too, in the same transaction.
   */
  save(name: string, snapshot: Snapshot, alsoAs?: string): Promise<void>;
  /** Those whose names begin so, in the order of their names; they may be of more than the log holds. */
  list(prefix: string): Promise<readonly SnapshotEntry[]>;
  /** Without effect for names that there are not. */
  remove(names: readonly string[]): Promise<void>;
}

export interface Lease {
  readonly name: string;
  readonly holder: string;
  /** Grows by one with each holder, also where the one before has it again; use it as a {@link Fence}. */
  readonly token: number;
  readonly expiresAt: Date;
}

export interface Leases {
  /**
   * Takes the lease for `ttlMs`, or renews it when `holder` holds it already.
   * Answers undefined while another holds it; one with more than twice its time left was taken under a clock that ran
   * ahead, and does not count. `steal` takes it from a holder known to be dead.
   */
  acquire(name: string, options: { holder: string; ttlMs: number; steal?: boolean }): Promise<Lease | undefined>;
  /** Frees the lease; without effect when another took it meanwhile. */
  release(lease: Lease): Promise<void>;
  /** Those of these names that are held now, in the order of their names. */
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
  /** Identifies this continuation of the log: a copy made by `backup` begins one of its own when it is first opened. */
  readonly epoch: string;
  /** All continuations of the log up to this one, oldest first. */
  readonly epochs: readonly string[];
  /** How this continuation began. */
  readonly begunAs: BegunAs;
  /** The same continuations as `epochs`, with how each began. */
  readonly history: readonly Epoch[];
  /** What a consumer keeps that is done with all events up to `position`. */
  cursor(position: number): Cursor;
  /**
   * Where the consumer with this cursor goes on: `subscribe({ from: await store.after(cursor), signal })`. Rejects with
   * {@link CursorRefused} when what it has seen is not what this log holds, say because the log was restored from a backup.
   */
  after(cursor: Cursor): Promise<number>;
  /**
   * Appends one or more events to one stream, atomically. Resolves only once they are durable (fsynced). What is appended
   * later may come first where the codec has to wait for something.
   */
  append(stream: string, events: readonly E[], options?: AppendOptions): Promise<Appended>;
  read(query?: Query): AsyncIterable<Recorded<E>>;
  /** As `read`, many events at a time, and of each only what a fold needs. */
  readFolded(query?: Query): AsyncIterable<readonly Folded<E>[]>;
  /** Reads events as they were stored, which is what the hashes cover: neither upcast nor checked. */
  readStored(query?: Query): AsyncIterable<Recorded<NewEvent>>;
  /**
   * The canonical bytes of the events [from, to], many at a time, as the hash chain and the leaves of a Merkle tree
   * cover them: position, stream, version, id, type, time in ms, data and meta, one a line.
   */
  readCanonical(query: { readonly from: number; readonly to: number }): AsyncIterable<readonly Uint8Array[]>;
  /** The idempotency keys of appends that ended within [from, to]; those that are archived meanwhile may come twice. Reads all keys that the database has whole. */
  readKeys(query: { readonly from: number; readonly to: number }): AsyncIterable<readonly StoredKey[]>;
  /** Catch-up, then live: every matching event from `from` on, in order, none twice, until `signal` aborts. */
  subscribe(query: SubscribeQuery): AsyncIterable<Recorded<E>>;
  /** As `subscribe`, with all that is there at a time; never an empty batch. */
  subscribeBatches(query: SubscribeQuery): AsyncIterable<readonly Recorded<E>[]>;
  head(): Promise<Head>;
  /**
   * The time by which events are recorded and leases expire, in ms since 1970: the server's, or that of the machine where
   * the log is a file. An event is never recorded before the newest one, also where this is earlier.
   */
  now(): Promise<number>;
  /** What the log holds of one stream now. A decision made on a state that reaches `position` may expect `version`. */
  streamHead(stream: string): Promise<StreamHead>;
  /** The hash of one event as the log holds it; undefined when it holds none there. Of position 0 it is 64 zeros. */
  hashAt(position: number): Promise<string | undefined>;
  /**
   * Whether this is still the log that was opened, and holds that event. If it does, a log on a server that has changed
   * (a failover) notes where it is now, so that no later opening takes it for a copy.
   */
  confirm(head: Pick<Head, "position" | "hash">): Promise<Presence>;
  /**
   * Recomputes the hash chain over [from, to], as far as the log goes at the start; names the first position that does
   * not fit. Other work goes on meanwhile, in at most `threads` threads (default: one for each core). `onProgress` gets
   * the events found good so far, in whatever order.
   */
  verify(options?: {
    from?: number;
    to?: number;
    threads?: number;
    onProgress?: (checked: number) => void;
  }): Promise<Verification>;
  /**
   * Writes a consistent copy of the live log to a new file, which has its name only once it is found whole and fsynced.
   * Throws {@link TargetTaken} or {@link BackupFailed}.
   */
  backup(file: string, options?: { onProgress?: (checked: number) => void }): Promise<Backup>;
  /**
   * Moves the oldest events out of the database into sealed segments, up to position `to` at the most and never the newest
   * event; all else reads them there as before. Gives each segment when its events are in it alone: to end the iteration
   * there ends the work, and the next call goes on. `fullOnly`: what does not fill a segment stays in the database.
   */
  archive(options: { readonly to: number; readonly fullOnly?: boolean }): AsyncIterable<ArchivedSegment>;
  /** The segments into which events were moved, in the order of their positions. */
  archived(): Promise<readonly ArchivedSegment[]>;
  /** Resolves (never rejects) with the fault after which this store acknowledges nothing more. */
  readonly failed: Promise<Error>;
  readonly snapshots: Snapshots;
  readonly leases: Leases;
}

/** An event as a codec hands it on to be written. */
export interface Encoded extends NewEvent {
  /** Work left to the writer thread, as JSON or other text without line breaks; never empty. */
  readonly transformInput?: string | undefined;
}

/**
 * Makes of the JSON of an event's data, and of what its codec left to the writer thread, the JSON that is stored, exactly as
 * `JSON.stringify` writes it: an import holds the log to that. What it throws refuses the append with {@link InvalidAppend}.
 */
export type WriterTransform = (data: string, input: string) => string;

/** What a codec is given of an event for a fold. */
export interface StoredData {
  readonly position: number;
  readonly type: string;
  readonly data: unknown;
  /** JSON, so that it need not be parsed where a glance is enough. */
  readonly meta: string;
}

/**
 * Checks and converts events on their way in and out, so that the store itself stays free of the domain. Many at a time,
 * so that what they need beside (keys, say) is fetched or made durable once for all of them; each answer has the order
 * and the number of what was given. An answer is a promise only where something has to be waited for.
 */
export interface Codec<E extends NewEvent> {
  /** All events of one append. Throws on an event that breaks its schema; where `isChecked`, none does. */
  encode(events: readonly E[], isChecked?: boolean): Awaitable<readonly Encoded[]>;
  /**
   * Upcasts and checks some of what was stored, in its order; throws on an unknown type or a broken schema. Where it
   * throws, the events are given again one by one, so that those before the fault are read.
   */
  decode(stored: readonly Recorded<NewEvent>[]): Awaitable<readonly Recorded<E>[]>;
  /**
   * What a subscriber in this process reads of an event that was appended here, made of the event itself: reading it
   * back from its JSON costs as much as writing it. Undefined: it is decoded as all others are. Only for events that
   * no code changes after they were appended.
   */
  recall?(event: E, place: Place): Recorded<E> | undefined;
  /** Another number once decoding gives something else than before: what is kept for subscribers is made again then. */
  revision?(): number;
  /** The data alone of {@link Codec.decode}. */
  decodeData(stored: readonly StoredData[]): Awaitable<readonly unknown[]>;
}
