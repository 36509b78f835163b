import { DEFAULT_LIMITS } from "../limits.ts";
import { openWriter } from "./connections.ts";
import { takeOwnership } from "./ownership.ts";

/**
 * Frees the disk space of archived events by rewriting the log's file, for which as much free space is needed again. A
 * crash leaves the log unchanged. Throws what `openSqliteStore` throws, {@link StoreOwned} while a service uses the
 * log.
 */
export function compactSqliteLog({ file, holder }: { readonly file: string; readonly holder: string }): void {
  const release = takeOwnership(file, holder, Date.now());
  try {
    const { db } = openWriter(file, DEFAULT_LIMITS.databaseBytes);
    try {
      db.exec("VACUUM");
      db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } finally {
      db.close();
    }
  } finally {
    release();
  }
}
