import type { DataOf } from "../events/catalog.ts";
import type { Projection } from "./projection.ts";

/** A backup, and when the log recorded it, ISO 8601. */
export type RecordedBackup = DataOf<"BackupMade"> & { readonly time: string };

/** The newest backups that the log knows; null if there is none. */
export interface Backups {
  made: RecordedBackup | null;
  rehearsed: RecordedBackup | null;
}

export const backups: Projection<Backups> = {
  name: "backups",
  version: 1,
  types: ["BackupMade", "BackupRehearsed"],
  initial: () => ({ made: null, rehearsed: null }),
  evolve(state, event) {
    if (event.type === "BackupMade") state.made = { ...event.data, time: event.time };
    if (event.type === "BackupRehearsed") state.rehearsed = { ...event.data, time: event.time };
    return state;
  },
};
