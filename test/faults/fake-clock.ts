import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Installation } from "../harness/process.ts";
import { libfaketime } from "./required-tools.ts";

/** A wall clock of some processes, separate from ours. The sandbox keeps the real time. */
export interface FakeClock {
  /** Environment variables that give a process this clock. */
  readonly env: Readonly<Record<string, string>>;
  /** Returns the time that these processes see. The result is wrong if the clock's speed is not 1. */
  now(): number;
  /** Moves the clock by `ms`; running processes notice immediately. */
  jump(ms: number): void;
  /** Sets the clock to this time. */
  set(ms: number): void;
}

export interface FakeClockOptions {
  /** Speed of the clock; default 1. */
  readonly speed?: number;
  /**
   * True if timers run at that speed too, so that all of time passes faster. Otherwise only the wall clock is wrong.
   * Default false.
   */
  readonly timersToo?: boolean;
}

/**
 * Gives this fake clock to every process that the installation starts from now on. A folder blocks the path at which a
 * process records the time, so each start trusts the clock, as after a boot.
 */
export function fakeClock({ env, directory }: Installation, options: FakeClockOptions = {}): FakeClock {
  const clock = createFakeClock(join(directory, "faketime"), options);
  Object.assign(env, clock.env);
  mkdirSync(join(directory, "reachlog.clock"), { recursive: true });
  return clock;
}

/** Creates a clock that `file` controls (libfaketime). */
export function createFakeClock(file: string, { speed = 1, timersToo = false }: FakeClockOptions = {}): FakeClock {
  let offsetMs = 0;
  const write = (): void => {
    // Writes the offset to a new file that then replaces the clock's file, so that no process reads a half-written
    // offset.
    const offset = `${offsetMs < 0 ? "-" : "+"}${Math.abs(offsetMs / 1000).toFixed(3)}`;
    writeFileSync(`${file}.new`, speed === 1 ? offset : `${offset} x${speed}`);
    renameSync(`${file}.new`, file);
  };
  write();
  const clock: FakeClock = {
    env: {
      LD_PRELOAD: libfaketime ?? "",
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: "1",
      ...(timersToo ? {} : { FAKETIME_DONT_FAKE_MONOTONIC: "1" }),
    },
    now: () => Date.now() + offsetMs,
    jump(ms) {
      offsetMs += ms;
      write();
    },
    set: (ms) => clock.jump(ms - clock.now()),
  };
  return clock;
}
