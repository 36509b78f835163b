/** Creates the folder for the temporary files of a test run. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

/**
 * Folder on a memory disk, used unless TMPDIR is set. fsync takes no time there, so that tests never wait for a busy
 * disk.
 */
const MEMORY_DISK = "/dev/shm";
/** Minimum free space on the memory disk, in bytes: several times what a whole run of tests needs. */
const FREE_BYTES_MIN = 2 ** 31;

const OF_A_RUN = /^reachlog-tests-(\d+)$/;

/**
 * Gives this process and its children a folder for temporary files, and removes it when the process exits. If a run is
 * killed, the next run removes its folder.
 */
export function useTemporaryFolder(): void {
  const given = process.env["TMPDIR"];
  if (given !== undefined && OF_A_RUN.test(basename(given))) return;
  const root = given ?? (hasRoom() ? MEMORY_DISK : tmpdir());
  for (const name of readdirSync(root)) {
    const pid = OF_A_RUN.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(root, name), { recursive: true, force: true });
  }
  const folder = join(root, `reachlog-tests-${process.pid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  process.env["TMPDIR"] = folder;
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
}

function hasRoom(): boolean {
  if (!existsSync(MEMORY_DISK)) return false;
  const { bavail, bsize } = statfsSync(MEMORY_DISK);
  return bavail * bsize >= FREE_BYTES_MIN;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (fault) {
    return (fault as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** A folder that is removed when the run ends or when it is disposed. */
export interface TemporaryFolder extends Disposable {
  readonly path: string;
  file(name: string): string;
}

export function temporaryFolder(): TemporaryFolder {
  const path = mkdtempSync(join(tmpdir(), "reachlog-"));
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}
