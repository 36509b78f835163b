import { resolve } from "node:path";
import { createLogArchive } from "../segments/log-archive.ts";
import { NO_SEGMENTS, type SegmentStorage } from "../segments/segment-storage.ts";
import {
  createAppend,
  createLeaseWriter,
  createSegmentRecorder,
  createSnapshotWriter,
} from "../append/queue-store-writes.ts";
import { createQueue } from "../append/queue.ts";
import { startWriter, toWriterOptions, type WriterModules } from "../append/start-writer.ts";
import { createDecode, createDecodeFolded, createDecoding, identityCodec, type Codec } from "../codec.ts";
import { createCursors } from "../epoch-cursors.ts";
import { DEFAULT_LIMITS, type Limits } from "../limits.ts";
import { oneByOne } from "../decode-batches.ts";
import type { Commit, EventStore, LogReading, NewEvent } from "../event-store-interface.ts";
import { backupTo } from "../sqlite/backup.ts";
import { createLive, type SubscribeEngine } from "../subscribe/subscribe.ts";
import { createArchiveTable } from "./archive-tables.ts";
import type { PostgresWriterOptions } from "./serve-writer.ts";
import {
  lastPosition,
  listLeases,
  listSnapshots,
  loadSnapshot,
  readHashAt,
  readHead,
  readNow,
  readStreamHead,
} from "./read-heads-snapshots-leases.ts";
import { confirmPlace, type PostgresLogPlace } from "./detect-copied-or-replaced-log.ts";
import { type LogReader, readBatches, readCanonical, readFolded, readKeys, readOnceBack } from "./read.ts";
import { openReader } from "./database-reader.ts";
import { prepareSchema } from "./prepare-schema.ts";
import { createVerifier } from "./start-verification-thread.ts";
import { watchHead } from "./watch-head.ts";

export interface PostgresStoreOptions<E extends NewEvent> {
  /**
   * `postgres://user:password@host:port/database`, or several `host:port` separated by commas, of which the one that
   * accepts writes is used. A network address needs `sslmode=verify-full`, and `sslrootcert` if the authority is not
   * public.
   */
  readonly url: string;
  /** The schema of the log; created if it does not exist. */
  readonly schema?: string;
  /** Codec of the events; by default they are stored as they are. */
  readonly codec?: Codec<E>;
  /**
   * URL of a module whose default export finishes, in the writer thread, events that the codec encoded only in part. It
   * may do costly work such as encryption.
   */
  readonly writerTransform?: URL;
  /**
   * False to write on the caller's thread. The log then opens sooner, and large appends block the caller's event loop.
   * Default: true.
   */
  readonly writerThread?: boolean;
  /**
   * Clock that dates events, in milliseconds since 1970, UTC; default: the server's clock, which all processes share.
   */
  readonly clock?: () => number;
  /** The store calls this after each transaction of appends, whose time includes the round trip to the server. */
  readonly onCommit?: (commit: Commit) => void;
  /**
   * Limits of this store that replace the defaults; `databaseBytes` has no effect, because the server has its own
   * limits.
   */
  readonly limits?: Partial<Limits>;
  /** The storage of events that were moved out of the database; by default there is none, and no event can be moved. */
  readonly segments?: SegmentStorage;
}

const SCHEMA = "eventstore";

const WRITER: WriterModules<PostgresWriterOptions> = {
  thread: new URL("./append-thread.ts", import.meta.url),
  loadServe: async () => (await import("./serve-writer.ts")).servePostgresWriter,
};

/**
 * Opens a log in PostgreSQL (14 or later) for any number of processes; creates missing tables. Throws {@link
 * StoreUnavailable} if the server is away, {@link StoreUnusable} if it cannot hold a log, {@link StoreBusy} during a
 * restore or import.
 */
export async function openPostgresStore<E extends NewEvent = NewEvent>(
  options: PostgresStoreOptions<E>,
): Promise<EventStore<E>> {
  const { url, schema = SCHEMA, clock, codec = identityCodec<E>(), segments = NO_SEGMENTS } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };

  await using opening = new AsyncDisposableStack();
  const { epochs, ...prepared } = await prepareSchema(url, schema);
  const place = { url, schema, ...prepared };
  const writer = await startWriter({
    ...WRITER,
    log: schema,
    options: { ...place, usesServerClock: clock === undefined, ...toWriterOptions(options, limits) },
    writerThread: options.writerThread,
    onReply: (reply) => queue.onReply(reply),
    onNotice: ({ position }) => live.onOthers(position),
    onAway: (notice) => queue.onAway(notice),
    onCrash: (error) => queue.onCrash(error),
  });
  opening.defer(() => writer.terminate());
  const reader = openReader(url, schema);
  const archive = createLogArchive(createArchiveTable(reader), segments);
  const log = { database: reader, archive: archive.reader };
  const verifier = createVerifier(place, reader);
  const live = createLive({
    ...createFollowing(log, codec),
    watch: (onHead) => watchHead(url, place.storeId, () => lastPosition(reader), onHead),
  });
  const now = clock ?? Date.now;
  const queue = createQueue({
    limits,
    clock: now,
    send: (request) => writer.send(request),
    isFollowed: () => live.isFollowed(),
    onDurable: (batch) => live.onDurable(batch),
    onCommit: options.onCommit ?? (() => {}),
    findArchivedKey: archive.reader.findKey,
  });
  opening.defer(() => reader.close());
  opening.defer(() => queue.close());
  opening.defer(() => verifier.close());
  opening.defer(() => archive.close());
  opening.defer(() => live.close());
  const resources = opening.move();
  const reading = createReading(log, codec, place);
  const archiving = { id: place.storeId, ...createSegmentRecorder(queue), verifyLive: verifier.verify };

  return {
    ...createCursors(place.storeId, epochs, () => lastPosition(reader)),
    failed: queue.failed,
    append: createAppend(queue, codec, limits),
    ...reading,
    ...archive.forStore({ ...reading, ...archiving }),
    now: async () => clock?.() ?? (await readNow(reader)),
    subscribe: (query) => oneByOne(live.subscribe(query), query.signal),
    subscribeBatches: (query) => live.subscribe(query),
    backup: (file, backupOptions) =>
      backupTo(new URL("./copy-to-sqlite-thread.ts", import.meta.url), { ...place, epochs }, resolve(file), {
        ...backupOptions,
        fetchFile: segments.read,
      }),
    snapshots: {
      ...createSnapshotWriter(queue),
      load: (name) => loadSnapshot(reader, name),
      list: (prefix) => listSnapshots(reader, prefix),
    },
    leases: { ...createLeaseWriter(queue, now), list: (names) => listLeases(reader, names, clock?.()) },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** Creates the functions by which subscribers read the log, with one decoder for all that they read. */
function createFollowing<E extends NewEvent>(log: LogReader, codec: Codec<E>): Omit<SubscribeEngine<E>, "watch"> {
  const decoding = createDecoding(codec);
  return { ...decoding, read: (range) => readOnceBack(log, decoding.decode, range) };
}

function createReading<E extends NewEvent>(
  log: LogReader,
  codec: Codec<E>,
  opened: PostgresLogPlace & { readonly epoch: string },
): LogReading<E> & { readonly confirm: EventStore["confirm"] } {
  const { database, archive } = log;
  const decode = createDecode(codec);
  const decodeStored = createDecode(identityCodec());
  const decodeFolded = createDecodeFolded(codec, (type: string) => type);
  return {
    read: (query = {}) => oneByOne(readBatches(log, decode, query)),
    readStored: (query = {}) => oneByOne(readBatches(log, decodeStored, query)),
    readFolded: (query = {}) => readFolded(log, decodeFolded, query),
    readCanonical: (query) => readCanonical(log, query),
    readKeys: (query) => readKeys(log, query),
    head: () => readHead(database),
    streamHead: (stream) => readStreamHead(database, stream),
    hashAt: async (position) => (await readHashAt(database, position)) ?? archive.hashAt(position),
    confirm: (head) => confirmPlace(database, opened, head, archive),
  };
}
