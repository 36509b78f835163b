import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { importSqliteLog } from "eventstore-lite";
import type { Clock } from "../../../src/platform/clock-ids-and-timers.ts";
import { logFiles } from "../../../src/log/log-file-paths.ts";
import type { StorePlace } from "../../../src/log/store-backends.ts";
import { secret } from "../../../src/platform/secret.ts";
import type { EncryptedLog } from "../../../src/privacy/encrypted-log.ts";
import { filePlace } from "../../../src/privacy/locate-log.ts";
import { openLogAt } from "../../../src/privacy/open-log.ts";
import { sqliteSecrets } from "../../../src/vault/sqlite-secrets.ts";

/** Folder of the logs, in memory if possible: SQLite behaves the same there, and its fsync costs nothing. */
const DIRECTORY = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** Master key of the tests, which is not secret. */
const MASTER_KEY = secret("07".repeat(32));

/** A real log for one history, with its copies and the keys of its personal data. */
export interface Log extends AsyncDisposable {
  /** The opened log. A restore or an import replaces it by another store. */
  readonly store: EncryptedLog;
  /** The same log, opened a second time as by another process. */
  readonly second: EncryptedLog;
  /** Sets the clock of the log. */
  useClock(clock: Clock): void;
  backUp(): Promise<void>;
  /**
   * Replaces the log by the newest backup, and adds the backup's keys to the present ones. Returns false if there is no
   * backup.
   */
  restore(options?: ReplaceOptions): Promise<boolean>;
  /**
   * Replaces the log by a copy of its files, as a program other than ours makes it; `begin` opens the copy first.
   * Returns false if there is no copy.
   */
  putBack(begin: (place: StorePlace) => Promise<void>, options?: ReplaceOptions): Promise<boolean>;
  /** Replaces the log by the import of an export that ended at `position`. */
  importUpTo(position: number): Promise<void>;
}

interface ReplaceOptions {
  /** True to leave the lost log open for the processes that use it. They go on and see nothing of the new log. */
  readonly isBeside?: boolean;
}

/**
 * Supplies each history with a new real log. The next one opens in the background, since that takes longer than a
 * history.
 */
export interface Logs extends AsyncDisposable {
  take(): Promise<Log>;
}

export function createLogs(): Logs {
  const directory = mkdtempSync(join(DIRECTORY, "reachlog-model-"));
  let made = 0;
  let next: Promise<Log> | undefined;
  const closing = new Set<Promise<void>>();
  const closeLater = (closed: Promise<void>): void => {
    closing.add(closed);
    void closed.finally(() => closing.delete(closed));
  };

  return {
    async take() {
      const log = await (next ?? openLog(join(directory, String((made += 1))), closeLater));
      next = openLog(join(directory, String((made += 1))), closeLater);
      return log;
    },
    async [Symbol.asyncDispose]() {
      await (await next)?.[Symbol.asyncDispose]();
      while (closing.size > 0) await Promise.all(closing);
      rmSync(directory, { recursive: true });
    },
  };
}

async function openLog(folder: string, closeLater: (closed: Promise<void>) => void): Promise<Log> {
  let clock: Clock = () => 0;
  let files = 0;
  let backup: { readonly file: string; readonly keys: string; readonly filesCopied: string } | undefined;
  const lost: EncryptedLog[] = [];
  const newFile = (): string => join(folder, `${(files += 1)}.sqlite`);
  const placeOf = (file: string) =>
    filePlace({ ...logFiles(file), keys: join(folder, "keys"), vault: join(folder, "vault") }, MASTER_KEY);
  const open = (file: string): Promise<EncryptedLog> =>
    openLogAt(placeOf(file), {
      clock: () => clock(),
      makeId: () => "lost",
      // Says that the present vault and keys belong to the opened log, as an operator declares after each restore and
      // import.
      takeOverKeys: true,
    });
  /** Opens the log twice, one after the other: the first call creates the files. */
  const openTwice = async (file: string) => [await open(file), await open(file)] as const;
  let current = newFile();
  let stores = await openTwice(current);
  const closeAll = async (): Promise<void> => {
    for (const store of [...lost.splice(0), ...stores]) await store[Symbol.asyncDispose]();
  };
  const replace = async (file: string, { isBeside = false }: ReplaceOptions = {}): Promise<true> => {
    if (isBeside) lost.push(...stores);
    else await closeAll();
    stores = await openTwice((current = file));
    return true;
  };
  const close = async (): Promise<void> => {
    await closeAll();
    rmSync(folder, { recursive: true });
  };

  return {
    get store() {
      return stores[0];
    },
    get second() {
      return stores[1];
    },
    useClock: (used) => {
      clock = used;
    },
    async backUp() {
      backup = { file: newFile(), keys: newFile(), filesCopied: newFile() };
      await stores[0].backup(backup.file);
      await copyKeys(join(folder, "keys"), backup.keys);
      copyLog(current, backup.filesCopied);
    },
    async restore(options) {
      if (backup === undefined) return false;
      const file = newFile();
      copyFileSync(backup.file, file);
      await copyKeys(backup.keys, join(folder, "keys"));
      return replace(file, options);
    },
    async putBack(begin, options) {
      if (backup === undefined) return false;
      const file = newFile();
      copyLog(backup.filesCopied, file);
      let isElsewhere = true;
      const { store } = placeOf(file);
      await begin({
        ...store,
        // Imitates a log on a server. After a restore it is in another database, until the service takes note of that
        // with `beginEpoch`.
        isElsewhere: async () => isElsewhere,
        async beginEpoch(...given) {
          await store.beginEpoch(...given);
          isElsewhere = false;
        },
      });
      return replace(file, options);
    },
    async importUpTo(position) {
      const file = newFile();
      await importSqliteLog({ file, events: stores[0].readStored({ to: position }) });
      await replace(file);
    },
    // Closing is not awaited, because the next history does not depend on it.
    async [Symbol.asyncDispose]() {
      closeLater(close());
    },
  };
}

/** Copies the log's files, including the write-ahead log with changes that are not yet in the main file. */
function copyLog(from: string, to: string): void {
  for (const end of ["", "-wal"]) if (existsSync(`${from}${end}`)) copyFileSync(`${from}${end}`, `${to}${end}`);
}

/**
 * Fills a key store from a copy of it, as a restore does: the version with more changes stays, without the keys that
 * were deleted in either.
 */
async function copyKeys(from: string, to: string): Promise<void> {
  await using source = await sqliteSecrets(from).open();
  await using target = await sqliteSecrets(to).open();
  await target.fill(await source.contents());
}
