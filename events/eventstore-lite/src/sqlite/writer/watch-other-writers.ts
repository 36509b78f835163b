import type { DatabaseSync } from "node:sqlite";
import { isBusy } from "../classify-errors.ts";

/**
 * Interval at which the database is asked for appends by other processes, because SQLite cannot notify across
 * processes.
 */
const POLL_MS = 100;

/**
 * Reports the log's last position at most 100 ms after another process has appended; the returned function stops this.
 * Runs in the writer thread, because other connections may wait for milliseconds while the writer is busy.
 */
export function watchOthers(
  db: DatabaseSync,
  onAppended: (position: number) => void,
  onFault: (error: unknown) => void,
): () => void {
  // SQLite changes this number only when another connection has written to the file
  // (https://sqlite.org/pragma.html#pragma_data_version).
  const selectChange = db.prepare("PRAGMA data_version");
  const selectLast = db.prepare("SELECT max(position) AS last FROM events");
  const change = (): unknown => selectChange.get()?.["data_version"];
  let known = change();

  function look(): void {
    // Events that an append in pieces has inserted so far are not in the log yet.
    if (db.isTransaction) return;
    const now = change();
    if (now === known) return;
    onAppended(Number(selectLast.get()?.["last"] ?? 0));
    known = now;
  }

  const timer = setInterval(() => {
    try {
      look();
    } catch (error) {
      // The error is "busy" while another process recovers the log after a crash. The next poll reads the position
      // then.
      if (!isBusy(error)) onFault(error);
    }
  }, POLL_MS);
  timer.unref();
  return () => clearInterval(timer);
}
