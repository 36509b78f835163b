import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A directory that goes with the test. */
export function temporaryDirectory(): Disposable & { file(name: string): string } {
  const directory = mkdtempSync(join(tmpdir(), "reachlog-account-"));
  return {
    file: (name) => join(directory, name),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true }),
  };
}
