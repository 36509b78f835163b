import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A new folder that only this user may read. Disposing it, or the process's exit, removes it. */
export function temporaryFolder(prefix: string): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), prefix));
  // A process that has to end at once disposes nothing.
  const remove = (): void => rmSync(path, { recursive: true, force: true });
  process.on("exit", remove);
  return {
    path,
    [Symbol.dispose]() {
      process.off("exit", remove);
      remove();
    },
  };
}
