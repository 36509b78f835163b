import { randomUUID } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { TargetTaken } from "../errors.ts";
import { createPrivateFile } from "../write-private-file-durably.ts";

/**
 * Creates a database whole or not at all: `write` fills a temporary file, which is then fsynced and renamed. `makeWay`
 * is called first, and throws if the name is taken. A crash may leave an unused file that ends in `.partial`.
 */
export async function createDatabaseFile<Result>(
  file: string,
  makeWay: () => void,
  write: (partial: string) => Promise<Result>,
): Promise<Result> {
  makeWay();
  const partial = `${file}.${randomUUID()}.partial`;
  createPrivateFile(partial);
  try {
    const result = await write(partial);
    fsyncPath(partial);
    makeWay();
    renameSync(partial, file);
    fsyncPath(dirname(file));
    return result;
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

/** Suffixes of files that another database may have left, and that SQLite would take for those of the new one. */
const REMAINS = ["-wal", "-journal"];

/** Throws {@link TargetTaken} if another database has left files next to this name. */
export function refuseRemains(file: string): void {
  for (const suffix of REMAINS) {
    if (existsSync(file + suffix)) throw new TargetTaken(`${file}${suffix} exists: it is of another database`);
  }
}

/** Throws {@link TargetTaken} unless the name is free. */
export function refuseExisting(file: string): void {
  if (existsSync(file)) throw new TargetTaken(`${file} exists already: nothing is overwritten`);
  refuseRemains(file);
}

function fsyncPath(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
