import { DatabaseSync } from "node:sqlite";
import { DEFAULT_LIMITS } from "../../limits.ts";
import { createTreeRange } from "../../proof/merkle-tree.ts";
import type { Epoch, Head } from "../../event-store-interface.ts";
import type { OpenedSegment } from "../../segments/seal-and-open-segments.ts";
import { markAsCopy, writeEpochs } from "../epochs-begun-by-copies.ts";
import { createDatabaseFile, refuseExisting } from "../create-database-file-whole.ts";
import { createDatabaseReader } from "../read/database-reader.ts";
import { readHead } from "../read/read-heads-snapshots-leases.ts";
import { createSchema } from "../schema.ts";
import { applyFillSettings, requireSqliteVersion } from "../connection-settings.ts";
import { createKeepKey } from "../fill-copy.ts";
import { createAdd } from "./add-events.ts";

export interface SegmentsOptions {
  /** Path of the copy, a new file. */
  readonly file: string;
  /** Id of the log to which the segments belong. */
  readonly id: string;
  /**
   * Epochs of the log to which the segments belong, as `EventStore.history` of that log returns them: how the log began
   * and continued.
   */
  readonly epochs: readonly Epoch[];
  /** All segments of the log from position 1 on, in order. Events after `to`, or later than `until`, are left out. */
  readonly segments: Iterable<OpenedSegment>;
  readonly to?: number | undefined;
  readonly until?: Date | undefined;
}

export interface CopiedSegments {
  readonly head: Head;
  readonly root: string;
}

/**
 * Makes a log from sealed segments, as if a backup had been made right after a chosen event. Returns its head and
 * Merkle root (hex). Makes nothing if it throws {@link ImportRefused}, {@link TargetTaken} or what `segments` throws.
 */
export function copyFromSegments({ file, ...options }: SegmentsOptions): Promise<CopiedSegments> {
  return createDatabaseFile(
    file,
    () => refuseExisting(file),
    async (partial) => fill(partial, options),
  );
}

function fill(
  file: string,
  { id, epochs, segments, to = Infinity, until }: Omit<SegmentsOptions, "file">,
): CopiedSegments {
  const db = new DatabaseSync(file);
  try {
    requireSqliteVersion(db);
    applyFillSettings(db);
    createSchema(db, id);
    db.exec("BEGIN");
    const add = createAdd(db, DEFAULT_LIMITS.eventBytes);
    const keep = createKeepKey(db);
    const tree = createTreeRange(0);
    let end = 0;
    for (const { events, leaves, keys, header } of segments) {
      for (const event of events()) {
        if (event.position > to || (until !== undefined && Date.parse(event.time) > until.getTime())) break;
        add(event);
        tree.add(leaves[event.position - header.first]!);
        end = event.position;
      }
      for (const key of keys) if (key.last <= end) keep(key);
    }
    // The first epoch is copied even if the copy holds no event, so that every copy has one. A later epoch is copied
    // only if the copy holds an event of that epoch.
    writeEpochs(
      db,
      epochs.filter(({ after }, index) => index === 0 || after < end),
    );
    markAsCopy(db);
    db.exec("COMMIT");
    return { head: readHead(createDatabaseReader(db)), root: Buffer.from(tree.root()).toString("hex") };
  } finally {
    db.close();
  }
}
