import { resolve } from "node:path";
import { DEFAULT_LIMITS, type Limits } from "./limits.ts";
import { createDatabaseReader } from "./read/database-reader.ts";
import { readHead } from "./read/head.ts";
import { readEvents } from "./read/read.ts";
import { loadSnapshot } from "./read/snapshot.ts";
import { createDecode, identityCodec } from "./recorded.ts";
import { backupTo } from "./sqlite/backup.ts";
import { openReader } from "./sqlite/connections.ts";
import { takeOwnership } from "./sqlite/ownership.ts";
import { createPrivateFile } from "./sqlite/private-file.ts";
import type { Codec, EventStore, Leases, NewEvent } from "./store.ts";
import { createLive } from "./subscribe/live.ts";
import { verifyLog } from "./verify.ts";
import { prepareAppend } from "./writer/prepare.ts";
import { createQueue, type Queue } from "./writer/queue.ts";
import { startThread } from "./writer/start-thread.ts";

export interface SqliteStoreOptions<E extends NewEvent> {
  /** Path of the database; it and its directory are made when they do not exist. */
  readonly file: string;
  /** Default: events are stored as they are. */
  readonly codec?: Codec<E>;
  /** Refuses to open the log while another process (or store) owns it. `holder` is what that one will be told. */
  readonly owner?: boolean | { readonly holder: string };
  /** Milliseconds since 1970, UTC; default `Date.now`. */
  readonly clock?: () => number;
  readonly limits?: Partial<Limits>;
}

/**
 * Opens an event log in one SQLite file, and creates it when it does not exist.
 *
 * Throws {@link StoreOwned} when another owner has it, {@link StoreUnusable} when the file is not such a log.
 */
export async function openSqliteStore<E extends NewEvent = NewEvent>(
  options: SqliteStoreOptions<E>,
): Promise<EventStore<E>> {
  const { owner = false, clock = Date.now, codec = identityCodec<E>() } = options;
  const file = resolve(options.file);
  const limits = { ...DEFAULT_LIMITS, ...options.limits };

  await using opening = new AsyncDisposableStack();
  createPrivateFile(file);
  if (owner !== false) opening.defer(takeOwnership(file, owner === true ? "" : owner.holder, clock()));
  const thread = await startThread(
    { file, databaseBytesMax: limits.databaseBytes },
    { onReply: (reply) => queue.onReply(reply), onCrash: (error) => queue.onCrash(error) },
  );
  opening.defer(() => thread.terminate());
  const reader = createDatabaseReader(openReader(file));
  const decode = createDecode(codec);
  const live = createLive(reader, decode);
  const queue = createQueue({
    limits,
    clock,
    send: (request) => thread.send(request),
    isFollowed: () => live.isFollowed(),
    onDurable: (batch) => live.onDurable(batch),
  });
  // The last to close the file tidies up the write-ahead log, which a read-only connection could not.
  opening.defer(() => queue.close());
  opening.defer(() => reader.close());
  opening.defer(() => live.close());
  const resources = opening.move();

  return {
    id: thread.storeId,
    failed: queue.failed,
    // Not async: a refusal by the checks and one by the queue are both rejections, and one promise is enough.
    append: (stream, events, appendOptions = {}) =>
      attempt(() => queue.append(prepareAppend(stream, events, appendOptions, codec, limits))),
    read: (query = {}) => readEvents(reader, decode, query),
    subscribe: (query) => live.subscribe(query),
    head: () => attempt(() => readHead(reader)),
    verify: (range = {}) => verifyLog(reader, range),
    backup: (target) => backupTo(file, resolve(target)),
    snapshots: {
      load: (name) => attempt(() => loadSnapshot(reader, name)),
      async save(name, snapshot) {
        await queue.perform({ kind: "saveSnapshot", name, snapshot });
      },
    },
    leases: createLeases(queue, clock),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

function createLeases(queue: Queue, clock: () => number): Leases {
  return {
    acquire: (name, { holder, ttlMs, steal = false }) =>
      queue.perform({ kind: "acquireLease", name, holder, ttlMs, steal, nowMs: clock() }),
    async release({ name, token }) {
      await queue.perform({ kind: "releaseLease", name, token });
    },
  };
}

/** Turns what `work` throws at once into a rejection. */
function attempt<Result>(work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return Promise.resolve(work());
  } catch (error) {
    return Promise.reject(error);
  }
}
