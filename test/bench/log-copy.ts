import { constants, copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Calls `work` with a copy of a log that no process has open, then deletes the copy. */
export async function onCopyOf<Result>(log: string, work: (copy: string) => Promise<Result>): Promise<Result> {
  const folder = mkdtempSync(`${log}-copy-`);
  try {
    const copy = join(folder, "log.sqlite");
    copyFileSync(log, copy, constants.COPYFILE_FICLONE);
    return await work(copy);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
