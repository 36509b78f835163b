import { mkdtempSync, rmSync } from "node:fs";
import { truncate, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./tools.ts";

/** A file system of its own, small enough to fill; needs root. */
export interface SmallDisk extends AsyncDisposable {
  readonly path: string;
  /** Takes every free byte. */
  fill(): Promise<void>;
  /** Gives back what `fill` took. */
  free(): Promise<void>;
}

export async function mountSmallDisk(mebibytes: number): Promise<SmallDisk> {
  const path = mkdtempSync(join(tmpdir(), "reachlog-disk-"));
  await run("mount", "-t", "tmpfs", "-o", `size=${mebibytes}m,mode=700`, "tmpfs", path);
  const ballast = join(path, "ballast");
  return {
    path,
    async fill() {
      // More than there is: others may write meanwhile, so what is free is known only when it is gone.
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

/** A file system on a file of its own (ext4), which can fail; needs root and loop devices. */
export interface FailingDisk extends AsyncDisposable {
  readonly path: string;
  /** The kernel's own reaction to a failed disk: from now on the file system cannot be written. */
  turnReadOnly(): Promise<void>;
  /** As a power cut: what is not synced is gone. No process may have a file open there. Mounts it again. Needs `xfs_io`. */
  cutPower(): Promise<void>;
  /** Mounts it again, as an operator would. */
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
      // Written first in any case: the journal has to be played back.
      await run("mount", "-o", "loop", image, path);
      if (how === "read-only") await run("mount", "-o", "remount,ro", path);
    },
    async [Symbol.asyncDispose]() {
      await run("umount", path);
      rmSync(directory, { recursive: true });
    },
  };
}
