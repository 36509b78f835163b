// Copies a log into an SQLite file and verifies the copy; started by open.ts.
import { openArchive } from "../segments/log-archive.ts";
import { createDecode, identityCodec } from "../codec.ts";
import type { Epoch } from "../event-store-interface.ts";
import { answerBackup } from "../sqlite/backup.ts";
import { fillCopy } from "../sqlite/fill-copy.ts";
import { createArchiveTable } from "./archive-tables.ts";
import { lastPosition } from "./read-heads-snapshots-leases.ts";
import { readBatches, readKeys } from "./read.ts";
import { openReader, TASK_MS_MAX } from "./database-reader.ts";

export interface CopyOrder {
  readonly url: string;
  readonly schema: string;
  readonly storeId: string;
  readonly epochs: readonly Epoch[];
  readonly target: string;
}

/** Number of rows that one query returns. */
const CHUNK_ROWS = 4_096;

await answerBackup(async ({ url, schema, storeId, epochs, target }: CopyOrder, fetchFile) => {
  const reader = openReader(url, schema, { statementMs: TASK_MS_MAX });
  try {
    const archive = openArchive(createArchiveTable(reader), { read: fetchFile });
    // Nothing after this position belongs to the copy: events, keys and snapshots are read up to it.
    const to = await lastPosition(reader);
    await fillCopy(target, {
      id: storeId,
      epochs,
      events: readBatches({ database: reader, archive }, createDecode(identityCodec()), { to }),
      keys: readKeys({ database: reader, archive }, { from: 1, to }),
      snapshotsAfter: (name) =>
        reader.all(
          `SELECT name, version, position, state FROM log.snapshots
           WHERE name > $1 AND position <= $2 ORDER BY name LIMIT ${CHUNK_ROWS}`,
          name,
          to,
        ),
    });
  } finally {
    await reader.close();
  }
});
