import { readdir, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Counter, type Registry } from "prom-client";
import { lookUp, lookUpEach } from "./figures.ts";

/** Linux has a link there for each descriptor that is open. */
const DESCRIPTORS = "/proc/self/fd";

/**
 * The process and the disk of the log, by the names that dashboards of every client library expect. Not the library's own:
 * those wake the process a hundred times a second to measure the event loop.
 */
export function observeProcess(registry: Registry, version: string, file: string | undefined): void {
  const startedAt = Math.round(Date.now() / 1_000 - process.uptime());
  const cpu = new Counter({
    name: "process_cpu_seconds_total",
    help: "Processor time of all threads, user and system.",
    registers: [registry],
    collect() {
      const { user, system } = process.cpuUsage();
      cpu.reset();
      cpu.inc((user + system) / 1_000_000);
    },
  });
  lookUp(registry, "process_start_time_seconds", "When the process started, Unix time.", () => startedAt);
  lookUp(registry, "process_resident_memory_bytes", "Memory that the process holds.", () => process.memoryUsage.rss());
  lookUp(registry, "process_open_fds", "Open file descriptors; absent where unknown.", countDescriptors);
  const build = { name: "reachlog_build_info", help: "1, with the version.", labelNames: ["version"] } as const;
  lookUpEach(registry, build, (gauge) => gauge.set({ version }, 1));
  lookUp(
    registry,
    "reachlog_event_loop_delay_seconds",
    "How long a turn of the event loop took when asked.",
    measureTurn,
  );
  if (file !== undefined) observeDisk(registry, dirname(file));
}

function observeDisk(registry: Registry, directory: string): void {
  lookUp(registry, "reachlog_disk_size_bytes", "Size of the file system that holds the log.", async () => {
    const { bsize, blocks } = await statfs(directory);
    return bsize * blocks;
  });
  lookUp(registry, "reachlog_disk_available_bytes", "What is left on it.", async () => {
    const { bsize, bavail } = await statfs(directory);
    return bsize * bavail;
  });
}

async function countDescriptors(): Promise<number> {
  return (await readdir(DESCRIPTORS)).length;
}

async function measureTurn(): Promise<number> {
  const askedAt = performance.now();
  await nextTurn();
  return (performance.now() - askedAt) / 1_000;
}
