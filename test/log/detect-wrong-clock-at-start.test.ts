// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { acceptClock, clockRecord, expectedWall } from "../../src/log/detect-wrong-clock-at-start.ts";
import { machineClock } from "../../src/log/log-time-and-clock-skew.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

const DAY_MS = 24 * 3_600_000;
const EARLIER = { boot: "a", uptimeMs: 5_000, wallMs: 1_000_000 };

test.each([
  ["the same boot adds the uptime since the record", { boot: "a", uptimeMs: 65_000 }, 1_060_000],
  ["another boot is unknown", { boot: "b", uptimeMs: 65_000 }, undefined],
  [
    "an uptime that went back is unknown, as in a container with a separate uptime",
    { boot: "a", uptimeMs: 4_000 },
    undefined,
  ],
])("the expected time after %s", (_, now, expected) => {
  expect(expectedWall(EARLIER, now)).toBe(expected);
});

describe("a clock record", () => {
  test("gives the expected time, or none if the file is missing or malformed", () => {
    using folder = temporaryFolder();
    const file = folder.file("log.clock");
    expect([clockRecord(file).expectedMs(), acceptClock(file)]).toEqual([undefined, false]);
    clockRecord(file).keep(Date.now() - 2 * DAY_MS);
    const expected = clockRecord(file).expectedMs() ?? NaN;
    expect(Math.round((Date.now() - expected) / DAY_MS)).toBe(2);
    const kept = readFileSync(file, "utf8");
    for (const text of ["", kept.slice(1), "null", "[]", "{}", kept.replace(/"wallMs":\d+/, '"wallMs":"1"')]) {
      writeFileSync(file, text);
      expect([clockRecord(file).expectedMs(), acceptClock(file)]).toEqual([undefined, false]);
    }
  });

  test("is silently not written if its folder is missing", () => {
    using folder = temporaryFolder();
    const record = clockRecord(folder.file("none/log.clock"));
    record.keep(Date.now());
    expect([record.expectedMs(), record.isForgotten()]).toEqual([undefined, false]);
  });

  test("is removed by accepting the clock only if it contradicts the clock", () => {
    using folder = temporaryFolder();
    const file = folder.file("log.clock");
    const record = clockRecord(file);
    record.keep(Date.now());
    expect([acceptClock(file), record.isForgotten()]).toEqual([false, false]);
    expect([acceptClock(file, () => Date.now() - DAY_MS), record.isForgotten()]).toEqual([true, true]);
  });
});

describe("the clock of a log in a file with a clock record", () => {
  /** Opens the log's clock on a machine whose clock was moved by `movedMs` since the time was last recorded. */
  function openMachine(file: string, movedMs: number) {
    clockRecord(file).keep(Date.now() - movedMs);
    const clock = machineClock({ record: clockRecord(file) });
    const look = (): Promise<void> => clock.look({ now: async () => 0 });
    return { clock, look };
  }

  test.each([2, -2])("starts at the expected time if the machine's clock was moved by %d days", async (days) => {
    using folder = temporaryFolder();
    const file = folder.file("log.clock");
    const { clock, look } = openMachine(file, days * DAY_MS);
    const kept = readFileSync(file, "utf8");
    await look();
    expect(Math.round(clock.skewMs() / DAY_MS)).toBe(days);
    expect(Math.round((Date.now() - clock.now()) / DAY_MS)).toBe(days);
    expect(readFileSync(file, "utf8")).toBe(kept);
    expect(acceptClock(file)).toBe(true);
    await look();
    expect(Math.abs(clock.skewMs())).toBeLessThan(60_000);
    expect(existsSync(file)).toBe(true);
  });

  test("follows the machine's clock if that was moved by less than five minutes", () => {
    using folder = temporaryFolder();
    const { clock } = openMachine(folder.file("log.clock"), 4 * 60_000);
    expect(Math.abs(Date.now() - clock.now())).toBeLessThan(60_000);
  });
});
