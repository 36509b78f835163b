import type { SegmentStorage } from "../segments/segment-storage.ts";
import { compactSqliteLog } from "./compact.ts";
import { examineSqliteLog, identifySqliteLog, type ExaminedLog } from "./read-format-and-newest-events.ts";
import { beginSqliteEpoch } from "./ownership.ts";

/** The work on a log in a file that needs no open store. `holder` describes the caller to other processes. */
export interface SqliteMaintenance {
  /** Returns the log's id and epoch. `epoch` is null in a copy that was not opened yet. */
  identify(): Promise<{ readonly id: string; readonly epoch: string | null }>;
  /** Reads the format and the newest events without changing anything, even if opening the log would be refused. */
  examine(segments: SegmentStorage): Promise<ExaminedLog>;
  /** Makes a log that an operator declares to be a copy continue in a new epoch. Throws {@link StoreOwned}. */
  beginEpoch(holder: string): void;
  /** Frees the space of archived events. Throws {@link StoreOwned}. */
  compact(holder: string): void;
}

export function maintainSqliteLog(file: string): SqliteMaintenance {
  return {
    identify: () => identifySqliteLog(file),
    examine: (segments) => examineSqliteLog(file, segments),
    beginEpoch: (holder) => beginSqliteEpoch({ file, holder }),
    compact: (holder) => compactSqliteLog({ file, holder }),
  };
}
