import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Makes the function that gives paths of logs that do not exist yet, each in a directory of its own. To be called at the
 * top of a test file, after whose tests the directories go away.
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
