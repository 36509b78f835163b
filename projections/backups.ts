import type { DataOf } from "../events/event-types-and-codec.ts";
import type { Projection } from "./projection.ts";

/** Backup that the log records, with the time at which it was recorded, ISO 8601. */
export type RecordedBackup = DataOf<"BackupMade"> & { readonly time: string };

/** Newest backup that was made, and newest that was rehearsed; null if there is none. */
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
