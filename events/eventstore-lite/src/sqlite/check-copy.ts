import type { Head } from "../event-store-interface.ts";
import { openReader } from "./connections.ts";
import { createDatabaseReader } from "./read/database-reader.ts";
import { pragma } from "./connection-settings.ts";
import { createVerifier } from "./verify/verify.ts";

/**
 * Verifies a copy of a log: SQLite checks its pages and indexes, `verify` checks the hash chain. Throws if the copy has
 * a fault, because it then cannot serve as a backup.
 */
export async function checkCopy(target: string, onProgress: (checked: number) => void): Promise<Head> {
  const db = openReader(target);
  try {
    const found = pragma(db, "integrity_check");
    if (found !== "ok") throw new Error(String(found));
    const verifier = createVerifier(target, createDatabaseReader(db));
    const { head, fault } = await verifier.verify({ onProgress });
    if (fault !== undefined) throw new Error(`position ${fault.position}: ${fault.reason}`);
    return head;
  } finally {
    db.close();
  }
}
