import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqliteStore, type EventStore } from "eventstore-lite";
import { codec, type Event } from "../../../events/catalog.ts";
import type { Clock } from "../../../src/clock.ts";

/** Where there is one, a disk in memory: SQLite does all that it does elsewhere, and its fsync costs nothing. */
const DIRECTORY = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** A log of its own for a history. */
export interface Log extends AsyncDisposable {
  readonly store: EventStore<Event>;
  /** The clock that the log tells the time by; it has none of its own. */
  useClock(clock: Clock): void;
}

/** Real logs, one for each history. The next one is opened meanwhile: a thread takes longer to start than a history. */
export interface Logs extends AsyncDisposable {
  take(): Promise<Log>;
}

export function createLogs(): Logs {
  const directory = mkdtempSync(join(DIRECTORY, "reachlog-model-"));
  let made = 0;
  let next: Promise<Log> | undefined;
  const closing = new Set<Promise<void>>();

  const open = async (): Promise<Log> => {
    let clock: Clock = () => 0;
    const folder = join(directory, String((made += 1)));
    const store = await openSqliteStore<Event>({ file: join(folder, "log.sqlite"), codec, clock: () => clock() });
    const close = async (): Promise<void> => {
      await store[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    };
    return {
      store,
      useClock: (used) => {
        clock = used;
      },
      // Not waited for: the next history need not.
      async [Symbol.asyncDispose]() {
        const closed = close();
        closing.add(closed);
        void closed.finally(() => closing.delete(closed));
      },
    };
  };

  return {
    async take() {
      const log = await (next ?? open());
      next = open();
      return log;
    },
    async [Symbol.asyncDispose]() {
      await (await next)?.[Symbol.asyncDispose]();
      while (closing.size > 0) await Promise.all(closing);
      rmSync(directory, { recursive: true });
    },
  };
}
