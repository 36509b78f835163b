import { readFileSync } from "node:fs";
import { outputOf } from "eventstore-lite/bench";

/**
 * Returns the maximum memory that a process has used so far, in MiB; on other systems than Linux, its present memory.
 */
export async function largestMib(pid: number): Promise<number> {
  const kib =
    process.platform === "linux"
      ? /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]
      : await outputOf(["ps", "-o", "rss=", "-p", String(pid)]);
  return Number(kib) / 1024;
}
