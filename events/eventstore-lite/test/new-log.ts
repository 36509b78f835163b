import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const directories: string[] = [];

/** Path of a log that does not exist yet, in a directory that goes away after the tests of this file. */
export function newLogPath(): string {
  const directory = mkdtempSync(join(tmpdir(), "eventstore-lite-"));
  directories.push(directory);
  return join(directory, "log.sqlite");
}

afterAll(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});
