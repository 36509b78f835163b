import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { examine, FAULTLESS, retry } from "./compare-log-with-ledger.ts";
import { createLedger } from "./record-answers-to-appends.ts";
import { startProgram } from "./start-program.ts";
import { lacks, memoryGroupPath } from "./required-tools.ts";

const newLogPath = temporaryLogs();

const KILLS = 10;
/** Memory limit of the group in which the tested program runs; the program alone takes 60 to 80 MiB. */
const MEMORY_BYTES_MAX = 200 * 1024 * 1024;

test.skipIf(lacks("memory cgroup"))(
  `${KILLS} kills by the kernel for lack of memory lose no acknowledged append`,
  async () => {
    using group = createMemoryGroup(MEMORY_BYTES_MAX);
    const file = newLogPath();
    const ledger = createLedger();
    for (let kill = 0; kill < KILLS; kill += 1) {
      const program = startProgram("append-and-leak-memory", {
        wrapper: group.wrapper,
        arguments: [file, String(ledger.asked.size), "100", ...ledger.unacknowledged()],
        onLine: (line) => ledger.take(line),
      });
      expect((await program.ended).signal).toBe("SIGKILL");
    }
    await retry(file, ledger);
    const found = await examine(file, ledger);
    console.log(
      `memory cap, killed ${group.kills()} times: acknowledged ${found.acknowledged}, lost ${found.lost.length}`,
    );
    expect(found).toMatchObject(FAULTLESS);
    expect(group.kills()).toBe(KILLS);
    expect(found.acknowledged).toBeGreaterThan(KILLS);
  },
);

interface MemoryGroup extends Disposable {
  /** Command that starts a program as a member of the group with little memory. */
  readonly wrapper: readonly string[];
  /** Returns how many processes of the group the kernel has killed for lack of memory. */
  kills(): number;
}

/**
 * Creates a group of processes with little memory, below this process's own group, with either version of Linux's
 * cgroups.
 */
function createMemoryGroup(bytesMax: number): MemoryGroup {
  const path = join(memoryGroupPath() ?? "", `eventstore-lite-${process.pid}`);
  mkdirSync(path);
  const isVersion2 = existsSync(join(path, "memory.max"));
  writeFileSync(join(path, isVersion2 ? "memory.max" : "memory.limit_in_bytes"), String(bytesMax));
  const events = join(path, isVersion2 ? "memory.events" : "memory.oom_control");
  return {
    wrapper: ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', path],
    kills: () => Number(/^oom_kill (\d+)$/m.exec(readFileSync(events, "utf8"))?.[1]),
    [Symbol.dispose]: () => rmdirSync(path),
  };
}
