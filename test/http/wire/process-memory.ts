import { readFileSync } from "node:fs";

/** Resident memory of a service's process, as reported by Linux. */
export function residentMiB({ process }: { readonly process: { readonly pid: number } }): number {
  const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${process.pid}/status`, "utf8"))?.[1];
  return Number(kib) / 1024;
}
