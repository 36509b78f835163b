import { readFileSync } from "node:fs";
import { outputOf } from "eventstore-lite/bench";

/** Returns the largest memory that a process had so far in MiB; outside Linux, its current memory. */
export async function largestMib(pid: number): Promise<number> {
  const kib =
    process.platform === "linux"
      ? /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]
      : await outputOf(["ps", "-o", "rss=", "-p", String(pid)]);
  return Number(kib) / 1024;
}
