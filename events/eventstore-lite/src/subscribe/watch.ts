import { lastPosition } from "../read/bounds.ts";
import type { DatabaseReader } from "../read/database-reader.ts";
import { isBusy } from "../sqlite/faults.ts";

/** How late an append by another process may be seen: SQLite cannot notify across processes. */
const POLL_MS = 100;

/** Notices what other processes append. */
export interface Watch {
  start(): void;
  stop(): void;
}

/** Looks at once when started, then every 100 ms; one look costs some microseconds. Keeps no process alive. */
export function createWatch(reader: DatabaseReader, onHead: (position: number) => void): Watch {
  let timer: ReturnType<typeof setInterval> | undefined;
  let knownChange: unknown;

  function look(): void {
    const change = reader.get("PRAGMA data_version")?.["data_version"];
    if (change === knownChange) return;
    knownChange = change;
    onHead(lastPosition(reader));
  }

  function tick(): void {
    try {
      look();
    } catch (error) {
      // Another process recovers the log just now; the next tick sees what there is to see.
      if (!isBusy(error)) throw error;
    }
  }

  return {
    start() {
      look();
      timer = setInterval(tick, POLL_MS);
      timer.unref();
    },
    stop() {
      clearInterval(timer);
    },
  };
}
