import type { DatabaseSync } from "node:sqlite";
import { isBusy } from "../classify-errors.ts";

/**
 * Default interval, in ms, at which a store asks its file for appends by other processes. SQLite cannot notify across
 * processes.
 */
export const POLL_MS = 100;

/**
 * Reports the log's last position at most `pollMs` after another process has appended. The returned function stops
 * this. The writer thread calls it, because a read of another connection can be delayed for milliseconds.
 */
export function watchOthers(
  db: DatabaseSync,
  pollMs: number,
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
  }, pollMs);
  timer.unref();
  return () => clearInterval(timer);
}
