import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./required-tools.ts";

/** Separate file system for a fault test; its files are at `path` while it is mounted. */
export interface Disk extends Disposable {
  readonly path: string;
  mount(...options: string[]): void;
  unmount(): void;
}

const mounted = new Set<Disk>();

// Also unmounts if a test times out, because such a test never leaves its `using` block.
process.once("exit", () => {
  for (const disk of mounted) disk[Symbol.dispose]();
});

/** Creates an ext4 file system on a loop device, which goes away with the mount. */
export function createExt4(bytes: number): Disk {
  return createDisk("ext4", (directory) => {
    const image = join(directory, "image");
    writeFileSync(image, "");
    truncateSync(image, bytes);
    run("mkfs.ext4", "-q", image);
    return { source: image, options: ["loop"] };
  });
}

/** Creates a disk in memory. */
export function createTmpfs(bytes: number): Disk {
  return createDisk("tmpfs", () => ({ source: "none", options: [`size=${bytes}`] }));
}

function createDisk(
  type: string,
  prepare: (directory: string) => { source: string; options: readonly string[] },
): Disk {
  const directory = mkdtempSync(join(tmpdir(), "eventstore-lite-disk-"));
  const path = join(directory, "mnt");
  mkdirSync(path);
  const { source, options } = prepare(directory);
  const disk: Disk = {
    path,
    mount(...more) {
      run("mount", "-t", type, "-o", [...options, ...more].join(), source, path);
      mounted.add(disk);
    },
    unmount() {
      run("umount", path);
      mounted.delete(disk);
    },
    [Symbol.dispose]() {
      // Unmounts lazily, because a process that a failed test left behind may have a file open there.
      if (mounted.delete(disk)) run("umount", "--lazy", path);
      rmSync(directory, { recursive: true, force: true });
    },
  };
  disk.mount();
  return disk;
}
