// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { parseOpenHours, type SendWindow } from "../../src/config/send-window.ts";
import { changesAt, isClosedFor, isOpen, opensAt } from "../../src/outreach/send-window.ts";
import { isShownOpen, nextEdge } from "./model/sending-window-by-wall-clock.ts";

const hoursOf = (text: string) => text.split(", ").flatMap((entry) => parseOpenHours(entry) ?? []);

const WEEK = hoursOf("Mon-Fri 09:00-17:00, Sat 10:00-12:00");

describe("the window is open", () => {
  test.each([
    ["from its first minute on", "2026-11-23T09:00:00Z", true],
    ["not before its first minute", "2026-11-23T08:59:59.999Z", false],
    ["up to its last moment", "2026-11-27T16:59:59.999Z", true],
    ["not at its end", "2026-11-27T17:00:00Z", false],
    ["on a day with separate hours", "2026-11-28T10:00:00Z", true],
    ["not on a day without hours", "2026-11-29T10:00:00Z", false],
  ])("%s", (_what, time, wanted) => {
    expect(isOpen(WEEK, "UTC", Date.parse(time))).toBe(wanted);
  });

  test("according to the clock of the zone", () => {
    const at = Date.parse("2026-11-23T08:30:00Z");
    expect(["UTC", "Europe/Berlin", "America/New_York"].map((zone) => isOpen(WEEK, zone, at))).toEqual([
      false,
      true,
      false,
    ]);
  });
});

/** Returns the time when the sending window next opens or closes, as ISO 8601; undefined if it never does. */
const changes = (text: string, zone: string, time: string): string | undefined => {
  const at = changesAt(hoursOf(text), zone, Date.parse(time));
  return at === undefined ? undefined : new Date(at).toISOString();
};

describe("the window changes next", () => {
  test.each([
    ["on the same day", "Mon-Fri 09:00-17:00", "UTC", "2026-11-23T08:00:00Z", "2026-11-23T09:00:00.000Z"],
    ["at its end", "Mon-Fri 09:00-17:00", "UTC", "2026-11-23T09:00:00Z", "2026-11-23T17:00:00.000Z"],
    ["after a weekend", "Mon-Fri 09:00-17:00", "UTC", "2026-11-27T17:00:00Z", "2026-11-30T09:00:00.000Z"],
    [
      "not at a midnight between two spans",
      "Mon-Tue 00:00-24:00",
      "UTC",
      "2026-11-23T12:00:00Z",
      "2026-11-25T00:00:00.000Z",
    ],
    ["on the next morning", "Fri 22:00-02:00", "UTC", "2026-11-27T23:00:00Z", "2026-11-28T02:00:00.000Z"],
    ["never if it is always open", "Mon-Sun 00:00-24:00", "UTC", "2026-11-23T12:00:00Z", undefined],
    // At 01:00 UTC on 2026-03-29, clocks in Berlin jump from 02:00 to 03:00.
    [
      "at the first time after a skipped start",
      "Mon-Sun 02:30-04:00",
      "Europe/Berlin",
      "2026-03-28T23:30:00Z",
      "2026-03-29T01:00:00.000Z",
    ],
    [
      "a week later if all of it is skipped",
      "Sun 02:10-02:50",
      "Europe/Berlin",
      "2026-03-29T00:00:00Z",
      "2026-04-05T00:10:00.000Z",
    ],
    [
      "at the clock change if its end is skipped",
      "Mon-Sun 01:00-02:30",
      "Europe/Berlin",
      "2026-03-29T00:30:00Z",
      "2026-03-29T01:00:00.000Z",
    ],
    // At 01:00 UTC on 2026-10-25, clocks in Berlin go back from 03:00 to 02:00.
    [
      "at the first end if its hour occurs twice",
      "Mon-Sun 02:00-02:30",
      "Europe/Berlin",
      "2026-10-25T00:10:00Z",
      "2026-10-25T00:30:00.000Z",
    ],
    [
      "at the second start if its hour occurs twice",
      "Mon-Sun 02:00-02:30",
      "Europe/Berlin",
      "2026-10-25T00:30:00Z",
      "2026-10-25T01:00:00.000Z",
    ],
    [
      "at the second start if clocks go back by half an hour",
      "Mon-Sun 01:45-02:00",
      "Australia/Lord_Howe",
      "2026-04-04T15:00:00Z",
      "2026-04-04T15:15:00.000Z",
    ],
    [
      "a week later if the zone skips its only day",
      "Fri 09:00-10:00",
      "Pacific/Apia",
      "2011-12-29T12:00:00Z",
      "2012-01-05T19:00:00.000Z",
    ],
  ])("%s", (_what, text, zone, time, wanted) => {
    expect(changes(text, zone, time)).toBe(wanted);
  });

  test("as a wall clock shows it, minute by minute", () => {
    const zone = fc.constantFrom("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu");
    const minute = fc.integer({ min: 0, max: 24 * 60 - 1 });
    const clock = (at: number): string =>
      `${String(Math.floor(at / 60)).padStart(2, "0")}:${String(at % 60).padStart(2, "0")}`;
    const days = fc.constantFrom("Mon-Sun", "Sat-Sun", "Mon-Fri");
    // Each is a day shortly before the clocks change in one of the zones.
    const start = fc.constantFrom("2026-03-07", "2026-03-28", "2026-04-03", "2026-10-02", "2026-10-24", "2026-10-31");
    fc.assert(
      fc.property(zone, days, minute, minute, start, fc.nat(3 * 24 * 60), (timezone, week, from, to, day, minutes) => {
        fc.pre(from !== to);
        const text = `${week} ${clock(from)}-${clock(to)}`;
        const ms = Date.parse(day) + minutes * 60_000;
        expect(isOpen(hoursOf(text), timezone, ms)).toBe(isShownOpen(text, timezone, ms));
        expect(changesAt(hoursOf(text), timezone, ms)).toBe(nextEdge(text, timezone, ms));
      }),
      { numRuns: 300 },
    );
  });
});

describe("with a clock that was set back behind the newest event", () => {
  const window: SendWindow = { text: "", hours: WEEK, zone: "quota", whenClosed: "pause" };
  const [open, closed] = [Date.parse("2026-11-23T10:00:00Z"), Date.parse("2026-11-23T18:00:00Z")];
  const at = (ms: number, clockMs: number) => ({ ms, clockMs, day: "", timezone: "UTC" });

  test("the window is open only if it is open at both times", () => {
    const shown = [at(open, open), at(closed, open), at(closed, closed)].map((now) =>
      isClosedFor(window, undefined, now),
    );
    expect(shown).toEqual([false, true, true]);
    expect(isClosedFor(undefined, undefined, at(closed, closed))).toBe(false);
  });

  test("the window opens according to the later time", () => {
    expect(new Date(opensAt(window, "UTC", at(closed, open))).toISOString()).toBe("2026-11-24T09:00:00.000Z");
    expect(opensAt(window, "UTC", at(open, open))).toBe(open);
  });
});
