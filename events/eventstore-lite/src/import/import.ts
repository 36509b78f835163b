import { resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { markAsImport } from "../epoch/table.ts";
import { DEFAULT_LIMITS, type Limits } from "../limits.ts";
import { createDatabaseReader } from "../read/database-reader.ts";
import { readHead } from "../read/head.ts";
import { nextTurn } from "../read/next-turn.ts";
import { createDatabaseFile } from "../sqlite/new-file.ts";
import { takeOwnership } from "../sqlite/ownership.ts";
import { createSchema } from "../sqlite/schema.ts";
import { applyFillSettings, requireSqliteVersion } from "../sqlite/settings.ts";
import type { Head, NewEvent, Recorded } from "../store.ts";
import { createAdd } from "./add.ts";
import { makeWay } from "./make-way.ts";

export interface ImportOptions {
  /** Where the log is to be: there must be nothing, or a log without events that nobody has open. */
  readonly file: string;
  /** As `readStored` gives them: from position 1 on, without a gap. They are looked at as if they came from anywhere. */
  readonly events: AsyncIterable<Recorded<NewEvent>>;
  readonly limits?: Partial<Limits>;
}

/** Events between two turns of the event loop: about ten milliseconds. */
const TURN_EVENTS = 512;

/**
 * Makes a log of events that another one has recorded, with their positions, times and hashes; gives its head. The log
 * gets an id of its own, so that consumers of the other one start anew, and holds no idempotency keys, snapshots or
 * leases.
 *
 * All or nothing: the log has its name only once the last event is checked and fsynced. Throws {@link ImportRefused}
 * for the first event that does not fit, {@link TargetTaken}, {@link StoreOwned}, and what `events` throws.
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
