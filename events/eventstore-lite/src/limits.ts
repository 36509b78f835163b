/** Bounds of one store. Each can be set smaller or larger in {@link SqliteStoreOptions}. */
export interface Limits {
  /** Maximum size of one event's data and meta together, in UTF-8 bytes. */
  readonly eventBytes: number;
  /** Maximum number of events in one append; they are one transaction, so they cannot be split. */
  readonly appendEvents: number;
  /** Maximum number of events that are accepted and not yet settled; more appends fail with StoreOverloaded. */
  readonly queuedEvents: number;
  /** Maximum number of UTF-16 units of text that are accepted and not yet settled. */
  readonly queuedChars: number;
  /** Number of events after which a transaction of appends takes no further append. */
  readonly batchEvents: number;
  /** Number of UTF-16 units of text after which a transaction of appends takes no further append. */
  readonly batchChars: number;
  /** Size at which the database file counts as a full disk. */
  readonly databaseBytes: number;
}

const KIB = 1024;
const MIB = 1024 * KIB;
const TIB = 1024 * 1024 * MIB;

export const DEFAULT_LIMITS: Limits = {
  // Four times the size of the largest request body that the service accepts.
  eventBytes: 256 * KIB,
  appendEvents: 10_000,
  // About a second of work for one disk. A caller that would wait longer is refused, and can try again.
  queuedEvents: 50_000,
  queuedChars: 64 * MIB,
  // Larger batches are slower (measured): they fall out of the processor's caches, and the first caller waits longer.
  batchEvents: 1_024,
  // A database server holds every batch in memory several times over, and its client waits until it has received all of
  // it.
  batchChars: 4 * MIB,
  // No log on a single machine reaches this limit. SQLite's own limit with 4 KiB pages is 16 TiB.
  databaseBytes: 8 * TIB,
};

/** Length of a stream, type, id, key or lease name in UTF-16 units: fits one index cell of SQLite many times over. */
export const NAME_CHARS_MAX = 512;
