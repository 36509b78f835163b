import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { uptime } from "node:os";
import type { Clock } from "../platform/clock.ts";
import { deniedBy, type ClockRecord } from "./log-clock.ts";

/** The clocks of a machine at one moment. */
export interface MachineTime {
  /** Changes with each boot of the machine. */
  readonly boot: string;
  /** Time since the boot, including the machine's sleep. */
  readonly uptimeMs: number;
  readonly wallMs: number;
}

/**
 * Returns the time that the wall clock should show now. Undefined after another boot, or if the uptime is not that of
 * the machine.
 */
export function expectedWall(
  earlier: MachineTime,
  { boot, uptimeMs }: Omit<MachineTime, "wallMs">,
): number | undefined {
  if (earlier.boot !== boot || uptimeMs < earlier.uptimeMs) return undefined;
  return earlier.wallMs + uptimeMs - earlier.uptimeMs;
}

/** A fault of the file stops no start: a record that cannot be read counts as unknown. */
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

/** Removes a record that contradicts the machine's clock; false if none does. */
export function acceptClock(file: string, wallClock?: Clock): boolean {
  if (deniedBy(clockRecord(file), wallClock) === undefined) return false;
  rmSync(file);
  return true;
}

/** Throws if the system has no such id, or if the runtime may not read it. */
function readMachine(): Omit<MachineTime, "wallMs"> {
  return { boot: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(), uptimeMs: uptime() * 1_000 };
}

/** Throws a SyntaxError if the text is not JSON. */
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
