import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rmSync } from "node:fs";
import { afterAll } from "bun:test";

/** Path of a log that does not exist yet, in a directory that goes away after this file's tests. */
export function newLogPath(): string {
  return join(newDirectory(), "log.sqlite");
}

export function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "eventstore-lite-"));
  directories.push(directory);
  return directory;
}

const directories: string[] = [];
afterAll(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});
