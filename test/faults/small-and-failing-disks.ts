import { mkdtempSync, rmSync } from "node:fs";
import { truncate, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./required-tools.ts";

/** A separate file system, small enough to fill; needs root. */
export interface SmallDisk extends AsyncDisposable {
  readonly path: string;
  /** Occupies every free byte. */
  fill(): Promise<void>;
  /** Frees the space that `fill` occupied. */
  free(): Promise<void>;
}

export async function mountSmallDisk(mebibytes: number): Promise<SmallDisk> {
  const path = mkdtempSync(join(tmpdir(), "reachlog-disk-"));
  await run("mount", "-t", "tmpfs", "-o", `size=${mebibytes}m,mode=700`, "tmpfs", path);
  const ballast = join(path, "ballast");
  return {
    path,
    async fill() {
      // Tries to write more than the disk holds, because only the error ENOSPC proves that the disk is full.
      await writeFile(ballast, new Uint8Array(mebibytes * 1024 * 1024)).catch((fault: { code?: string }) => {
        if (fault.code !== "ENOSPC") throw fault;
      });
    },
    free: () => unlink(ballast),
    async [Symbol.asyncDispose]() {
      await run("umount", path);
      rmSync(path, { recursive: true });
    },
  };
}

/** A file system (ext4) in a file of its own, which can be made to fail. Needs root and loop devices. */
export interface FailingDisk extends AsyncDisposable {
  readonly path: string;
  /** Simulates the kernel's reaction to a failed disk: the file system can no longer be written. */
  turnReadOnly(): Promise<void>;
  /**
   * Simulates a power cut, which loses unsynced data, and mounts the disk again. No process may have a file open on it.
   * Needs `xfs_io`.
   */
  cutPower(): Promise<void>;
  /** Mounts the disk again, as an operator would. */
  mountAgain(how: "read-only" | "writable"): Promise<void>;
}

const IMAGE_BYTES = 64 * 1024 * 1024;

export async function mountFailingDisk(): Promise<FailingDisk> {
  const directory = mkdtempSync(join(tmpdir(), "reachlog-disk-"));
  const image = join(directory, "image");
  const path = join(directory, "disk");
  await writeFile(image, "");
  await truncate(image, IMAGE_BYTES);
  await run("mkfs.ext4", "-q", image);
  await run("mkdir", path);
  await run("mount", "-o", "loop", image, path);
  return {
    path,
    async turnReadOnly() {
      await run("mount", "-o", "remount,abort", path);
    },
    async cutPower() {
      await run("xfs_io", "-x", "-c", "shutdown", path);
      await run("umount", path);
      await run("mount", "-o", "loop", image, path);
    },
    async mountAgain(how) {
      await run("umount", path);
      // The disk is first mounted writable, even if `how` is "read-only", because the journal of its file system must
      // be replayed.
      await run("mount", "-o", "loop", image, path);
      if (how === "read-only") await run("mount", "-o", "remount,ro", path);
    },
    async [Symbol.asyncDispose]() {
      await run("umount", path);
      rmSync(directory, { recursive: true });
    },
  };
}
