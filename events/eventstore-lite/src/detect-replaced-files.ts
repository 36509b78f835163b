import { statSync, type Stats } from "node:fs";

/**
 * Notes which files are at these paths now. The returned function throws if one was since removed, moved or hidden by
 * another, because later writes to it would be lost. Opens no file: closing it would drop this process's locks.
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

/** How often a writer checks the files next to its database, in ms. */
export const FILES_EVERY_MS = 20;

/**
 * Remembers a database's files as {@link rememberFiles} does, but checks those next to the database at most every
 * {@link FILES_EVERY_MS}. Until such a check, acknowledged events stay safe: closing the log copies them into the
 * database.
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

/** Returns a file's status; undefined if there is no file, or this process may not read its status. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
