// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { dayIn, nextDayAt } from "../../src/outreach/quota-day.ts";

const HOUR_MS = 3_600_000;
const ZONES = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "America/Havana",
  "Africa/Cairo",
  "America/Nuuk",
  "Asia/Kolkata",
  "Australia/Lord_Howe",
  "Pacific/Kiritimati",
  "Pacific/Pago_Pago",
  "Pacific/Apia",
  "Pacific/Chatham",
];

const at = (time: string): number => Date.parse(time);

test.each([
  ["UTC", "2026-03-01T23:59:59.999Z", "2026-03-01"],
  ["UTC", "2026-03-02T00:00:00.000Z", "2026-03-02"],
  ["Europe/Berlin", "2026-06-30T22:00:00.000Z", "2026-07-01"],
  ["Pacific/Kiritimati", "2026-03-01T10:00:00.000Z", "2026-03-02"],
  ["Pacific/Pago_Pago", "2026-03-01T10:59:59.999Z", "2026-02-28"],
  ["Pacific/Pago_Pago", "2026-03-01T11:00:00.000Z", "2026-03-01"],
  ["UTC", "2028-02-29T12:00:00.000Z", "2028-02-29"],
  ["America/New_York", "2028-03-01T04:59:59.999Z", "2028-02-29"],
])("in %s the time %s belongs to the day %s", (zone, time, day) => {
  expect(dayIn(zone, at(time))).toBe(day);
});

test.each([
  ["a common day", "UTC", "2026-03-01T08:00:00.000Z", "2026-03-02T00:00:00.000Z"],
  ["the first millisecond of a day", "UTC", "2026-03-01T00:00:00.000Z", "2026-03-02T00:00:00.000Z"],
  ["the last millisecond of a day", "UTC", "2026-03-01T23:59:59.999Z", "2026-03-02T00:00:00.000Z"],
  ["a leap day", "UTC", "2028-02-28T12:00:00.000Z", "2028-02-29T00:00:00.000Z"],
  ["a day of 23 hours", "Europe/Berlin", "2026-03-28T23:00:00.000Z", "2026-03-29T22:00:00.000Z"],
  ["a day of 25 hours", "Europe/Berlin", "2026-10-24T22:00:00.000Z", "2026-10-25T23:00:00.000Z"],
  ["a midnight that does not exist", "Africa/Cairo", "2026-04-23T12:00:00.000Z", "2026-04-23T22:00:00.000Z"],
  ["a zone 14 hours ahead", "Pacific/Kiritimati", "2026-03-01T10:00:00.000Z", "2026-03-02T10:00:00.000Z"],
  ["a zone 11 hours behind", "Pacific/Pago_Pago", "2026-03-01T10:00:00.000Z", "2026-03-01T11:00:00.000Z"],
])("nextDayAt returns the end of the day for %s", (_what, zone, time, end) => {
  expect(new Date(nextDayAt(zone, at(time))).toISOString()).toBe(end);
});

test("a date that a zone skipped does not exist: in Apia the 31st followed the 29th", () => {
  const end = nextDayAt("Pacific/Apia", at("2011-12-30T09:59:59.999Z"));
  expect([dayIn("Pacific/Apia", end - 1), dayIn("Pacific/Apia", end)]).toEqual(["2011-12-29", "2011-12-31"]);
  expect(new Date(end).toISOString()).toBe("2011-12-30T10:00:00.000Z");
});

test("nextDayAt is the first millisecond of another day, in any zone at any time", () => {
  const moment = fc.integer({ min: at("2015-01-01T00:00:00Z"), max: at("2040-01-01T00:00:00Z") });
  fc.assert(
    fc.property(fc.constantFrom(...ZONES), moment, fc.double({ min: 0, max: 1, noNaN: true }), (zone, ms, share) => {
      const day = dayIn(zone, ms);
      const end = nextDayAt(zone, ms);
      expect(end - ms).toBeLessThanOrEqual(25 * HOUR_MS);
      expect(dayIn(zone, end)).not.toBe(day);
      expect(dayIn(zone, end - 1)).toBe(day);
      expect(dayIn(zone, Math.floor(ms + (end - 1 - ms) * share))).toBe(day);
    }),
    { numRuns: 2_000 },
  );
});
