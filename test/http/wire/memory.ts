import { readFileSync } from "node:fs";
import type { Running } from "../../harness/process.ts";

/** Memory of a service's process, as Linux counts it. */
export function residentMiB({ process }: Pick<Running, "process">): number {
  const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${process.pid}/status`, "utf8"))?.[1];
  return Number(kib) / 1024;
}
