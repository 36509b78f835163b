import { statSync, type Stats } from "node:fs";

/**
 * Remembers which files these paths name. The returned function throws an Error once one of them is removed, moved or
 * covered: a database goes on to use the file that it has open, and what it writes there is lost with the process.
 *
 * No file is opened: closing any descriptor of a database drops the locks that this process holds on it.
 */
export function rememberFiles(paths: readonly string[]): () => void {
  const known = paths.flatMap((path) => {
    const file = statOf(path);
    return file === undefined ? [] : [{ path, file }];
  });
  return () => {
    for (const { path, file } of known) {
      const now = statOf(path);
      if (now?.ino === file.ino && now.dev === file.dev) continue;
      throw new Error(
        `${path} is no longer the file that was opened: put that back, or restart with what is there now`,
      );
    }
  };
}

/** Between two looks of a writer at the files beside its database, ms. */
export const FILES_EVERY_MS = 20;

/**
 * As {@link rememberFiles}, for each transaction: each call looks at the database, and at most every {@link FILES_EVERY_MS} at
 * the files beside it. An acknowledged event is in the database, or gets there from its open log when that closes.
 */
export function rememberDatabase(
  [database, ...others]: readonly [string, ...string[]],
  elapsedMs: () => number = () => performance.now(),
): () => void {
  const requireDatabase = rememberFiles([database]);
  const requireOthers = rememberFiles(others);
  let lookedAt = -Infinity;
  return () => {
    requireDatabase();
    const now = elapsedMs();
    if (now - lookedAt < FILES_EVERY_MS) return;
    requireOthers();
    lookedAt = now;
  };
}

/** Undefined where there is no file, or none that this process may look at. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
