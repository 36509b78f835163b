import type { DatabaseSync } from "node:sqlite";
import { isBusy } from "../faults.ts";

/** How late an append by another process may be seen: SQLite cannot notify across processes. */
const POLL_MS = 100;

/**
 * Reports how far the log goes after each append by another process, at the latest 100 ms later. It runs in the writer
 * thread: beside a writer in full swing SQLite makes a reader wait for milliseconds, even for this one number.
 * Answers the function that ends it.
 */
export function watchOthers(db: DatabaseSync, onAppended: (position: number) => void): () => void {
  // Changes only when another connection wrote to the file (https://sqlite.org/pragma.html#pragma_data_version).
  const selectChange = db.prepare("PRAGMA data_version");
  const selectLast = db.prepare("SELECT max(position) AS last FROM events");
  const change = (): unknown => selectChange.get()?.["data_version"];
  let known = change();

  function look(): void {
    // What an append in pieces has inserted so far is not in the log yet.
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
      // Another process recovers the log just now; the next look sees what there is to see.
      if (!isBusy(error)) throw error;
    }
  }, POLL_MS);
  timer.unref();
  return () => clearInterval(timer);
}
