import { DEFAULT_LIMITS } from "../limits.ts";
import { openWriter } from "./connections.ts";
import { takeOwnership } from "./ownership.ts";

/**
 * Returns the space of archived events to the file system: rewrites the remaining log, for which as much space is
 * needed again. A crash leaves the log as it was. Throws what `openSqliteStore` throws, {@link StoreOwned} while a
 * service has it.
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
