/** The memory harness: parts of the service in the test's own process, on a real log in a temporary folder. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Logger } from "../../src/platform/logger.ts";

export const METADATA = { caller: "tests" };

export const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** A folder that goes when the run ends, or when it is disposed. */
export function temporaryFolder(): Disposable & { readonly path: string; file(name: string): string } {
  const path = mkdtempSync(join(tmpdir(), "reachlog-"));
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** Path of a log that does not exist yet. */
export function newLogFile(): string {
  return temporaryFolder().file("log.sqlite");
}
