/**
 * This file is preloaded into a service to measure stalls of its event loop: the delay of a timer of one millisecond,
 * and the thread's processor time between two turns. A busy machine does not increase the latter.
 */
import { dlopen, ptr } from "bun:ffi";
import { renameSync, writeFileSync } from "node:fs";

const INTERVAL_MS = 1;

/** Clock id on Linux. */
const CLOCK_THREAD_CPUTIME_ID = 3;

const { symbols } = dlopen("libc.so.6", { clock_gettime: { args: ["i32", "ptr"], returns: "i32" } });
const secondsAndNs = new BigInt64Array(2);

/** Processor time of this thread in ms. `process.threadCpuUsage` advances in steps of 4 ms on many kernels. */
function busyMs(): number {
  symbols.clock_gettime(CLOCK_THREAD_CPUTIME_ID, ptr(secondsAndNs));
  const [seconds = 0n, ns = 0n] = secondsAndNs;
  return Number(seconds) * 1_000 + Number(ns) / 1_000_000;
}

/**
 * Stalls of the event loop in ms. Figures with `late` are delays of a timer, those with `busy` the processor time of a
 * turn.
 */
export interface Stalls {
  readonly longestLate: number;
  /** Delay in ms that only one turn in 1,000 exceeded. */
  readonly p999Late: number;
  readonly longestBusy: number;
}

const file = process.env["STALLS_FILE"] ?? "";
let late: number[] = [];
let longestBusy = 0;
let dueAt = performance.now() + INTERVAL_MS;
let busyBefore = busyMs();

// On SIGUSR2, writes how long the event loop was stalled since the last signal to the file that `STALLS_FILE` names.
// Then measures again from zero.
process.on("SIGUSR2", () => {
  const sorted = late.toSorted((one, other) => one - other);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  const stalls: Stalls = { longestLate: at(1), p999Late: at(0.999), longestBusy };
  // Renamed into place, so that no reader gets half of it.
  writeFileSync(`${file}.new`, JSON.stringify(stalls));
  renameSync(`${file}.new`, file);
  late = [];
  longestBusy = 0;
});

setInterval(() => {
  const now = performance.now();
  late.push(now - dueAt);
  dueAt = now + INTERVAL_MS;
  const busy = busyMs();
  longestBusy = Math.max(longestBusy, busy - busyBefore);
  busyBefore = busy;
}, INTERVAL_MS).unref();
