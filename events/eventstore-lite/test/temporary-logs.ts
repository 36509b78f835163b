import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Creates the function that returns paths of new logs, each in a separate directory. Call it at the top of a test file;
 * the directories are removed after its tests.
 */
export function temporaryLogs(): () => string {
  const directories: string[] = [];
  afterAll(() => {
    for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  });
  return () => {
    const directory = mkdtempSync(join(tmpdir(), "eventstore-lite-"));
    directories.push(directory);
    return join(directory, "log.sqlite");
  };
}
