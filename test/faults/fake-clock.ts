import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Installation } from "../harness/process.ts";
import { libfaketime } from "./tools.ts";

/** The wall clock of some processes, apart from ours. The sandbox keeps to the real time. */
export interface FakeClock {
  /** What a process that has this clock is started with. */
  readonly env: Readonly<Record<string, string>>;
  /** Now, as those processes see it. Not at another speed than ours. */
  now(): number;
  /** Moves it by so much against where it stands; running processes notice at once. */
  jump(ms: number): void;
  /** Sets it to this moment. */
  set(ms: number): void;
}

export interface FakeClockOptions {
  /** How fast it runs; default 1. */
  readonly speed?: number;
  /** Whether timers run at that speed too: then all of time is faster, and not the wall clock wrong. Default false. */
  readonly timersToo?: boolean;
}

/**
 * Gives every process that the world starts from now on a wall clock of its own. No start knows what that should show, as
 * after a boot: a folder is in the place of the record.
 */
export function fakeClock({ env, directory }: Installation, options: FakeClockOptions = {}): FakeClock {
  const clock = createFakeClock(join(directory, "faketime"), options);
  Object.assign(env, clock.env);
  mkdirSync(join(directory, "reachlog.clock"), { recursive: true });
  return clock;
}

/** A clock that `file` sets (libfaketime). */
export function createFakeClock(file: string, { speed = 1, timersToo = false }: FakeClockOptions = {}): FakeClock {
  let offsetMs = 0;
  const write = (): void => {
    // By renaming, so that no process ever reads half of it.
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
