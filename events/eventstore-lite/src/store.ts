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

/** `none`: the stream is empty; `exists`: it is not; a number: its version is that (0 = empty). */
export type ExpectedVersion = "any" | "none" | "exists" | number;

/** Proof of holding a lease: the append is refused with {@link LeaseLost} when another took it meanwhile. */
export interface Fence {
  readonly lease: string;
  readonly token: number;
}

export interface AppendOptions {
  readonly expected?: ExpectedVersion;
  /** Idempotency: a repeat with the same key appends nothing and gives the first result, also after a restart. */
  readonly key?: string;
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

export interface Query {
  readonly stream?: string;
  readonly types?: readonly string[];
  /** First position, inclusive (default 1). */
  readonly from?: number;
  /** Last position, inclusive (default the head). */
  readonly to?: number;
  /** Only events recorded at or before this time. */
  readonly until?: Date;
  readonly backwards?: boolean;
  readonly limit?: number;
}

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

export interface Snapshots {
  load(name: string): Promise<Snapshot | undefined>;
  save(name: string, snapshot: Snapshot): Promise<void>;
}

export interface Lease {
  readonly name: string;
  readonly holder: string;
  /** Grows with each change of holder; use it as a {@link Fence}. */
  readonly token: number;
  readonly expiresAt: Date;
}

export interface Leases {
  /**
   * Takes the lease for `ttlMs`, or renews it when `holder` holds it already.
   * Answers undefined while another holds it. `steal` takes it from a holder known to be dead.
   */
  acquire(name: string, options: { holder: string; ttlMs: number; steal?: boolean }): Promise<Lease | undefined>;
  /** Frees the lease; without effect when another took it meanwhile. */
  release(lease: Lease): Promise<void>;
}

/**
 * An append-only log in one total order.
 * Errors: {@link VersionConflict}, {@link LeaseLost}, {@link StoreOverloaded}, {@link StoreFull},
 * {@link AppendInDoubt}, {@link InvalidAppend}, {@link StoreClosed} (errors.ts).
 */
export interface EventStore<E extends NewEvent = NewEvent> extends AsyncDisposable {
  /** Identifies this log for its whole life; copies made by `backup` keep it. */
  readonly id: string;
  /** Appends one or more events to one stream, atomically. Resolves only once they are durable (fsynced). */
  append(stream: string, events: readonly E[], options?: AppendOptions): Promise<Appended>;
  read(query?: Query): AsyncIterable<Recorded<E>>;
  /** Catch-up, then live: every matching event from `from` on, in order, none twice, until `signal` aborts. */
  subscribe(query: SubscribeQuery): AsyncIterable<Recorded<E>>;
  head(): Promise<Head>;
  /** Recomputes the hash chain over [from, to]; names the first position that does not fit. */
  verify(options?: { from?: number; to?: number; onProgress?: (checked: number) => void }): Promise<Verification>;
  /** Writes a consistent copy of the live log to a new file. */
  backup(file: string): Promise<void>;
  /** Resolves (never rejects) with the fault after which this store acknowledges nothing more. */
  readonly failed: Promise<Error>;
  readonly snapshots: Snapshots;
  readonly leases: Leases;
}

/** Checks and converts events on their way in and out, so that the store itself stays free of the domain. */
export interface Codec<E extends NewEvent> {
  /** Throws on an event that breaks its schema. */
  encode(event: E): NewEvent;
  /** Upcasts and checks what was stored; throws on an unknown type or a broken schema. */
  decode(stored: Recorded<NewEvent>): Recorded<E>;
}
