import { DatabaseSync } from "node:sqlite";
import type { Awaitable } from "../value-or-promise.ts";
import { DEFAULT_LIMITS } from "../limits.ts";
import type { Epoch, NewEvent, Recorded, StoredKey } from "../event-store-interface.ts";
import { markAsCopy, writeEpochs } from "./epochs-begun-by-copies.ts";
import { createAdd } from "./import/add-events.ts";
import { createSchema } from "./schema.ts";
import { applyFillSettings, requireSqliteVersion } from "./connection-settings.ts";

/** A log that can be copied event by event. */
export interface CopySource {
  readonly id: string;
  readonly epochs: readonly Epoch[];
  readonly events: AsyncIterable<readonly Recorded<NewEvent>[]>;
  /** Idempotency keys of the log; one may come twice, because it moved into the archive meanwhile. */
  readonly keys: AsyncIterable<readonly StoredKey[]>;
  /**
   * Returns the next snapshots of the copied events whose names come after a name, ordered by name; none at the end.
   */
  snapshotsAfter(name: string): Awaitable<readonly Record<string, unknown>[]>;
}

/**
 * Fills a new database with a copy of a log that has all its events, archived ones too. Leases are left out, because
 * their holders know nothing of the copy.
 */
export async function fillCopy(
  target: string,
  { id, epochs, events, keys, snapshotsAfter }: CopySource,
): Promise<void> {
  const db = new DatabaseSync(target);
  try {
    requireSqliteVersion(db);
    applyFillSettings(db);
    createSchema(db, id);
    db.exec("BEGIN");
    writeEpochs(db, epochs);
    const add = createAdd(db, DEFAULT_LIMITS.eventBytes);
    for await (const batch of events) for (const event of batch) add(event);
    const keep = createKeepKey(db);
    for await (const chunk of keys) for (const key of chunk) keep(key);
    await copySnapshots(db, snapshotsAfter);
    markAsCopy(db);
    db.exec("COMMIT");
  } finally {
    db.close();
  }
}

/** Creates the function that stores an idempotency key in a copy, and ignores one that comes twice. */
export function createKeepKey(db: DatabaseSync): (key: StoredKey) => void {
  const insert = db.prepare(
    "INSERT OR IGNORE INTO idempotency_keys (key, digest, first, last, version) VALUES (?, ?, ?, ?, ?)",
  );
  return ({ key, digest, first, last, version }) => void insert.run(key, digest, first, last, version);
}

async function copySnapshots(db: DatabaseSync, snapshotsAfter: CopySource["snapshotsAfter"]): Promise<void> {
  const insert = db.prepare("INSERT INTO snapshots (name, version, position, state) VALUES (?, ?, ?, ?)");
  for (let after = ""; ;) {
    const rows = await snapshotsAfter(after);
    for (const row of rows) insert.run(...(Object.values(row) as (string | number)[]));
    if (rows.length === 0) return;
    after = String(rows.at(-1)!["name"]);
  }
}
