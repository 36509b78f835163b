import { resolve } from "node:path";
import { createLogArchive } from "../segments/log-archive.ts";
import { createSegmentFolder, type SegmentStorage } from "../segments/segment-storage.ts";
import {
  attempt,
  createAppend,
  createLeaseWriter,
  createSegmentRecorder,
  createSnapshotWriter,
} from "../append/queue-store-writes.ts";
import { createQueue } from "../append/queue.ts";
import { startWriter, toWriterOptions, type WriterModules } from "../append/start-writer.ts";
import { createDecode, createDecodeFolded, createDecoding, identityCodec, type Codec } from "../codec.ts";
import { createCursors } from "../epoch-cursors.ts";
import { StoreUnavailable } from "../errors.ts";
import { DEFAULT_LIMITS, type Limits } from "../limits.ts";
import { oneByOne } from "../decode-batches.ts";
import { rememberFiles } from "../detect-replaced-files.ts";
import type { Commit, EventStore, LogReading, NewEvent } from "../event-store-interface.ts";
import { createLive, type SubscribeEngine } from "../subscribe/subscribe.ts";
import { createArchiveTable } from "./archive-tables.ts";
import { backupTo } from "./backup.ts";
import { filesOf, openReader } from "./connections.ts";
import { readEpochs } from "./epochs-begun-by-copies.ts";
import { refuseStaleFiles } from "./refuse-stale-write-ahead-log.ts";
import { takeOwnership } from "./ownership.ts";
import { createPrivateFile } from "../write-private-file-durably.ts";
import { lastPosition } from "./read/position-bounds.ts";
import { createDatabaseReader } from "./read/database-reader.ts";
import {
  createTypeNames,
  listLeases,
  listSnapshots,
  loadSnapshot,
  readHashAt,
  readHead,
  readStreamHead,
} from "./read/read-heads-snapshots-leases.ts";
import { type LogReader, readBatches, readCanonical, readFolded, readKeys } from "./read/read.ts";
import { createVerifier } from "./verify/verify.ts";
import type { SqliteWriterOptions } from "./writer/serve-writer.ts";
import { POLL_MS } from "./writer/watch-other-writers.ts";

export interface SqliteStoreOptions<E extends NewEvent> {
  /** Path of the database; it and its directory are created if they do not exist. */
  readonly file: string;
  /** Codec of the events; by default they are stored as they are. */
  readonly codec?: Codec<E>;
  /**
   * Module whose default export, a {@link WriterTransform}, completes in the writer thread what the codec left undone.
   * Costly work, such as encryption, then does not block the thread that serves requests.
   */
  readonly writerTransform?: URL;
  /**
   * False to write on the caller's thread. The log then opens sooner, and each commit blocks the caller's event loop.
   * Default: true.
   */
  readonly writerThread?: boolean;
  /**
   * True if no other process or store may own the log while this one has it open; opening fails if one does. `holder`:
   * name of the owner that others see.
   */
  readonly owner?: boolean | { readonly holder: string };
  /** Clock that dates events, in ms since 1970; default: `Date.now`. */
  readonly clock?: () => number;
  readonly limits?: Partial<Limits>;
  /** The storage of events that were moved out of the database; default: a folder next to the file. */
  readonly segments?: SegmentStorage;
  /** Interval in ms at which the store asks the file for appends by other processes; default: 100. */
  readonly pollMs?: number;
  /** The store calls this after each transaction of appends, so that the caller can measure the disk. */
  readonly onCommit?: (commit: Commit) => void;
}

const WRITER: WriterModules<SqliteWriterOptions> = {
  thread: new URL("./writer/writer-thread.ts", import.meta.url),
  loadServe: async () => (await import("./writer/serve-writer.ts")).serveSqliteWriter,
};

/**
 * Opens an event log in one SQLite file, and creates it if it does not exist. Throws {@link StoreOwned} if another
 * owner has it, {@link StoreUnusable} if the file is not such a log.
 */
export async function openSqliteStore<E extends NewEvent = NewEvent>(
  options: SqliteStoreOptions<E>,
): Promise<EventStore<E>> {
  const { owner = false, clock = Date.now, codec = identityCodec<E>(), pollMs = POLL_MS } = options;
  const file = resolve(options.file);
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const segments = options.segments ?? createSegmentFolder(`${file}.segments`);

  await using opening = new AsyncDisposableStack();
  createPrivateFile(file);
  opening.defer(refuseStaleFiles(file));
  if (owner !== false) opening.defer(takeOwnership(file, owner === true ? "" : owner.holder, clock()));
  const writer = await startWriter({
    ...WRITER,
    log: file,
    options: { file, pollMs, databaseBytesMax: limits.databaseBytes, ...toWriterOptions(options, limits) },
    writerThread: options.writerThread,
    onReply: (reply) => queue.onReply(reply),
    onNotice: ({ position }) => live.onOthers(position),
    onCrash: (error) => queue.onCrash(error),
  });
  opening.defer(() => writer.terminate());
  const requireFiles = rememberFiles(filesOf(file));
  const reader = createDatabaseReader(openReader(file));
  const archive = createLogArchive(createArchiveTable(reader), segments);
  const log = { database: reader, archive: archive.reader };
  const verifier = createVerifier(file, reader);
  const live = createLive(createSubscribeEngine(log, codec));
  const queue = createQueue({
    limits,
    clock,
    send: (request) => writer.send(request),
    sendPiece: (piece) => writer.send(piece),
    isFollowed: () => live.isFollowed(),
    onDurable: (batch) => live.onDurable(batch),
    onCommit: options.onCommit ?? (() => {}),
    findArchivedKey: archive.reader.findKey,
  });
  // SQLite removes the write-ahead log when the last connection closes, but a read-only one cannot remove it. So the
  // queue, whose thread writes, is closed after all readers.
  opening.defer(() => queue.close());
  opening.defer(() => reader.close());
  opening.defer(() => verifier.close());
  opening.defer(() => archive.close());
  opening.defer(() => live.close());
  const resources = opening.move();
  const reading = createReading(log, codec);
  const archiving = { id: writer.storeId, ...createSegmentRecorder(queue), verifyLive: verifier.verify };

  return {
    ...createCursors(writer.storeId, readEpochs(reader), () => lastPosition(reader)),
    failed: queue.failed,
    append: createAppend(queue, codec, limits),
    ...reading,
    ...archive.forStore({ ...reading, ...archiving }),
    confirm: createConfirm(requireFiles, reading.hashAt),
    now: async () => clock(),
    subscribe: (query) => oneByOne(live.subscribe(query), query.signal),
    subscribeBatches: (query) => live.subscribe(query),
    backup: (target, backupOptions) => {
      const module = new URL("./backup-thread.ts", import.meta.url);
      return backupTo(module, { source: file }, resolve(target), { ...backupOptions, fetchFile: segments.read });
    },
    snapshots: {
      ...createSnapshotWriter(queue),
      load: (name) => attempt(() => loadSnapshot(reader, name)),
      list: (prefix) => attempt(() => listSnapshots(reader, prefix)),
    },
    leases: { ...createLeaseWriter(queue, clock), list: (names) => attempt(() => listLeases(reader, names, clock())) },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/**
 * Creates the function `confirm` of a store. It checks that the log's file is still at its path and that the caller's
 * event has the same hash. It compares no epochs, because an open file keeps its epoch.
 */
function createConfirm(requireFiles: () => void, hashAt: EventStore["hashAt"]): EventStore["confirm"] {
  return async ({ position, hash }) => {
    try {
      requireFiles();
    } catch (error) {
      throw new StoreUnavailable(error);
    }
    return position === 0 || (await hashAt(position)) === hash ? "same" : "lost";
  };
}

function createSubscribeEngine<E extends NewEvent>(log: LogReader, codec: Codec<E>): SubscribeEngine<E> {
  const decoding = createDecoding(codec);
  return {
    ...decoding,
    read: (range) => readBatches(log, decoding.decode, range),
    // Appends by others arrive as notices of the writer thread.
    watch(onHead) {
      onHead(lastPosition(log.database));
      return () => undefined;
    },
  };
}

function createReading<E extends NewEvent>(log: LogReader, codec: Codec<E>): LogReading<E> {
  const decode = createDecode(codec);
  const decodeStored = createDecode(identityCodec());
  const { database, archive } = log;
  const decodeFolded = createDecodeFolded(codec, createTypeNames(database));
  return {
    read: (query = {}) => oneByOne(readBatches(log, decode, query)),
    readStored: (query = {}) => oneByOne(readBatches(log, decodeStored, query)),
    readFolded: (query = {}) => readFolded(log, decodeFolded, query),
    readCanonical: (query) => readCanonical(log, query),
    readKeys: (query) => readKeys(log, query),
    head: () => attempt(() => readHead(database)),
    streamHead: (stream) => attempt(() => readStreamHead(database, stream)),
    hashAt: (position) => attempt(() => readHashAt(database, position) ?? archive.hashAt(position)),
  };
}
