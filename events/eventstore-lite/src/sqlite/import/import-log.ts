import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreUnusable, TargetTaken } from "../../errors.ts";
import { DEFAULT_LIMITS, type Limits } from "../../limits.ts";
import { nextTurn } from "../../next-turn.ts";
import type { Head, NewEvent, Recorded } from "../../event-store-interface.ts";
import { markAsImport } from "../epochs-begun-by-copies.ts";
import { isBusy, isNotADatabase } from "../classify-errors.ts";
import { refuseStaleFiles } from "../refuse-stale-write-ahead-log.ts";
import { createDatabaseFile, refuseRemains } from "../create-database-file-whole.ts";
import { takeOwnership } from "../ownership.ts";
import { createDatabaseReader } from "../read/database-reader.ts";
import { readHead } from "../read/read-heads-snapshots-leases.ts";
import { createSchema, requireOurFormat } from "../schema.ts";
import { applyFillSettings, requireSqliteVersion } from "../connection-settings.ts";
import { createAdd } from "./add-events.ts";

export interface ImportOptions {
  /** The place of the new log: it must be unused, or hold a log without events that no process has open. */
  readonly file: string;
  /**
   * Events as `readStored` yields them, from position 1 on without a gap; they keep positions, times and hashes. Each
   * is checked, as if from an unknown source. Idempotency keys, snapshots and leases are not imported.
   */
  readonly events: AsyncIterable<Recorded<NewEvent>>;
  readonly limits?: Partial<Limits>;
}

/** Number of imported events after which other work gets its turn of the event loop: about ten milliseconds. */
const TURN_EVENTS = 512;

/**
 * Creates a log from another log's events, all or nothing, with a new id so that consumers start over; returns its
 * head. Throws {@link ImportRefused} if an event does not fit, {@link TargetTaken}, {@link StoreOwned}, and what
 * `events` throws.
 */
export async function importSqliteLog({ file, events, limits }: ImportOptions): Promise<Head> {
  const target = resolve(file);
  const release = takeOwnership(target, "an import", Date.now());
  try {
    return await createDatabaseFile(
      target,
      () => makeWay(target),
      (partial) => fill(partial, events, { ...DEFAULT_LIMITS, ...limits }),
    );
  } finally {
    release();
  }
}

async function fill(file: string, events: ImportOptions["events"], { eventBytes }: Limits): Promise<Head> {
  const db = new DatabaseSync(file);
  try {
    requireSqliteVersion(db);
    applyFillSettings(db);
    createSchema(db);
    db.exec("BEGIN");
    markAsImport(db);
    const add = createAdd(db, eventBytes);
    let added = 0;
    for await (const event of events) {
      add(event);
      added += 1;
      if (added % TURN_EVENTS === 0) await nextTurn();
    }
    db.exec("COMMIT");
    return readHead(createDatabaseReader(db));
  } finally {
    db.close();
  }
}

/** Busy time-out for checking a log that may be replaced: the check does not wait until others have closed it. */
const NO_WAIT_MS = 0;

/**
 * Throws {@link TargetTaken} if the file holds a log with events, or one that a process has open. Otherwise removes the
 * write-ahead log of an empty log, because it must not be applied to the log that replaces it.
 */
function makeWay(file: string): void {
  if (existsSync(file)) requireUnused(file);
  refuseRemains(file);
}

function requireUnused(file: string): void {
  const release = refuseStaleFiles(file);
  const db = new DatabaseSync(file, { timeout: NO_WAIT_MS });
  try {
    requireOurFormat(db);
    if (holdsEvents(db)) throw new TargetTaken(`${file} holds events: only a new log is imported into`);
    // To change the journal mode, SQLite must have the file for itself for a moment, and fails while another process
    // has it open. The change removes the write-ahead log.
    db.exec("PRAGMA journal_mode = DELETE");
  } catch (error) {
    if (isBusy(error)) throw new TargetTaken(`${file} is in use by another process`, { cause: error });
    throw isNotADatabase(error) ? new StoreUnusable(`${file} is not an SQLite database`, { cause: error }) : error;
  } finally {
    db.close();
    release();
  }
}

function holdsEvents(db: DatabaseSync): boolean {
  const table = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'events'").get();
  return table !== undefined && db.prepare("SELECT 1 FROM events LIMIT 1").get() !== undefined;
}
