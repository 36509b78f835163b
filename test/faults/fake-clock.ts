import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Installation } from "../harness/process.ts";
import { libfaketime } from "./tools.ts";

/** The wall clock of a world's processes, apart from ours. The sandbox keeps to the real time. */
export interface FakeClock {
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

/** Gives every process that the world starts from now on a wall clock of its own (libfaketime). */
export function fakeClock(
  { env, directory }: Installation,
  { speed = 1, timersToo = false }: FakeClockOptions = {},
): FakeClock {
  const file = join(directory, "faketime");
  let offsetMs = 0;
  const write = (): void => {
    // By renaming, so that no process ever reads half of it.
    const offset = `${offsetMs < 0 ? "-" : "+"}${Math.abs(offsetMs / 1000).toFixed(3)}`;
    writeFileSync(`${file}.new`, speed === 1 ? offset : `${offset} x${speed}`);
    renameSync(`${file}.new`, file);
  };
  write();
  Object.assign(env, {
    LD_PRELOAD: libfaketime ?? "",
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: "1",
    ...(timersToo ? {} : { FAKETIME_DONT_FAKE_MONOTONIC: "1" }),
  });
  const clock: FakeClock = {
    now: () => Date.now() + offsetMs,
    jump(ms) {
      offsetMs += ms;
      write();
    },
    set: (ms) => clock.jump(ms - clock.now()),
  };
  return clock;
}
