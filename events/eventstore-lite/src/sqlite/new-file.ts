import { randomUUID } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { TargetTaken } from "../errors.ts";
import { createPrivateFile } from "../private-file.ts";

/**
 * Makes a database that exists as a whole or not at all: `write` fills a file beside it, which gets the name once it is
 * complete and fsynced. `makeWay` is called right before that, and throws when the name is taken.
 * After a crash a file that ends in `.partial` may be left, which nothing will read.
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

/** A write-ahead log or journal that another database has left would be taken for that of the new one. */
const REMAINS = ["-wal", "-journal"];

/** Throws {@link TargetTaken} when there is such a file, or what another database has left beside it. */
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
