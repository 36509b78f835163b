import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A requirement of a fault test, in addition to Bun. */
type Need = "root" | "strace" | "mount" | "xfs_io" | "faketime" | "sqlite3" | "memory cgroup";

/**
 * Checks that a required tool works. Each check uses it for real: in a container a program may exist, and yet not be
 * allowed to do its work.
 */
const checks: Record<Need, () => boolean> = {
  root: () => process.getuid?.() === 0,
  strace: () => succeeds("strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fsync", "true"),
  mount: canMount,
  xfs_io: () => succeeds("xfs_io", "-V"),
  faketime: () => succeeds("faketime", "-f", "+1d", "true"),
  sqlite3: () => succeeds("sqlite3", "--version"),
  "memory cgroup": () => memoryGroupPath() !== undefined,
};

const known = new Map<Need, boolean>();

/**
 * True if a requirement is missing on this machine. Passed to `test.skipIf`, so that a fault test that is impossible
 * here counts as skipped.
 */
export function lacks(...needs: Need[]): boolean {
  return needs.some((need) => {
    if (!known.has(need)) known.set(need, checks[need]());
    return known.get(need) === false;
  });
}

function succeeds(...command: [string, ...string[]]): boolean {
  return Bun.which(command[0]) !== null && Bun.spawnSync(command).success;
}

/** Runs a program to its end. Throws with its stderr if it fails. */
export function run(...command: string[]): string {
  const { success, stdout, stderr } = Bun.spawnSync(command);
  if (!success) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
  return stdout.toString();
}

function canMount(): boolean {
  const directory = mkdtempSync(join(tmpdir(), "eventstore-lite-probe-"));
  const [image, mountPoint] = [join(directory, "image"), join(directory, "mnt")];
  const script = `truncate -s 8M ${image} && mkfs.ext4 -q ${image} && mkdir ${mountPoint} &&
    mount -o loop ${image} ${mountPoint} && umount ${mountPoint}`;
  const can = succeeds("sh", "-c", script);
  rmSync(directory, { recursive: true, force: true });
  return can;
}

/**
 * Returns the folder in which this process may create memory groups: of cgroup version 1, or of version 2 if this
 * process was given the memory controller. Undefined if there is none.
 */
export function memoryGroupPath(): string | undefined {
  const script = `
    group=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
    path=/sys/fs/cgroup/memory$group; limit=memory.limit_in_bytes
    [ -d "$path" ] && [ -n "$group" ] || { path=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup); limit=memory.max; }
    probe="$path/eventstore-lite-probe-$$"
    mkdir "$probe" 2>/dev/null || exit 1
    [ -w "$probe/$limit" ]; able=$?
    rmdir "$probe"; [ $able = 0 ] && echo "$path"`;
  const { success, stdout } = Bun.spawnSync(["sh", "-c", script]);
  return success ? stdout.toString().trim() : undefined;
}

/**
 * True if long fault tests try every case (FAULTS_WHOLE=1). Otherwise each tries only a part, so that all fault tests
 * together take less time.
 */
export const isWhole = process.env["FAULTS_WHOLE"] === "1";
