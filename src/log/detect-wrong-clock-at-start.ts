// Records the machine's clocks in a file next to the log, so that a start notices that the wall clock is wrong.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { uptime } from "node:os";
import type { Clock } from "../platform/clock-ids-and-timers.ts";
import { deniedBy, type ClockRecord } from "./log-time-and-clock-skew.ts";

/** The clocks of a machine at one moment. */
export interface MachineTime {
  /** Id of the machine's present boot. */
  readonly boot: string;
  /** Time since the machine's boot, including its sleep, in ms. */
  readonly uptimeMs: number;
  readonly wallMs: number;
}

/**
 * Returns the time that the wall clock should show now: that of an earlier reading, plus the uptime since. Undefined if
 * the machine was booted since, or if the uptime went back and so cannot be that of the machine.
 */
export function expectedWall(
  earlier: MachineTime,
  { boot, uptimeMs }: Omit<MachineTime, "wallMs">,
): number | undefined {
  if (earlier.boot !== boot || uptimeMs < earlier.uptimeMs) return undefined;
  return earlier.wallMs + uptimeMs - earlier.uptimeMs;
}

/**
 * Creates a record of the machine's clock in a file. A record that cannot be read counts as unknown, so it stops no
 * start.
 */
export function clockRecord(file: string): ClockRecord {
  let wasThere = false;
  return {
    expectedMs() {
      const earlier = attempt(() => parseMachineTime(readFileSync(file, "utf8")));
      const now = attempt(readMachine);
      if (earlier === undefined || now === undefined) return undefined;
      wasThere = true;
      return expectedWall(earlier, now);
    },
    keep(wallMs) {
      attempt(() => {
        writeFileSync(file, JSON.stringify({ ...readMachine(), wallMs }), { mode: 0o600 });
        wasThere = true;
      });
    },
    isForgotten: () => wasThere && !existsSync(file),
  };
}

/**
 * Removes the record of the clock if it contradicts the machine's clock, because an operator says that the machine's
 * clock is right. Returns false if the two agree.
 */
export function acceptClock(file: string, wallClock?: Clock): boolean {
  if (deniedBy(clockRecord(file), wallClock) === undefined) return false;
  rmSync(file);
  return true;
}

/** Reads the machine's boot id and uptime. Throws if the system has no boot id, or if the runtime may not read it. */
function readMachine(): Omit<MachineTime, "wallMs"> {
  return { boot: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(), uptimeMs: uptime() * 1_000 };
}

/** Parses a record of the machine's clocks. Throws a SyntaxError if the text is not JSON. */
function parseMachineTime(text: string): MachineTime | undefined {
  const { boot, uptimeMs, wallMs } = JSON.parse(text) as Record<string, unknown>;
  if (typeof boot !== "string" || typeof uptimeMs !== "number" || typeof wallMs !== "number") return undefined;
  return { boot, uptimeMs, wallMs };
}

function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
