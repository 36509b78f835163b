import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "bun:test";

const directories: string[] = [];
afterAll(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

/** Path of a log that does not exist yet; it goes away after this file's tests. */
export function newLogFile(): string {
  const directory = mkdtempSync(join(tmpdir(), "reachlog-test-"));
  directories.push(directory);
  return join(directory, "log.sqlite");
}
