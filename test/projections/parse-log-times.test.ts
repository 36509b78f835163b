// These tests call the code directly.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { msOf, toDay } from "../../projections/parse-log-times.ts";

test("times and their UTC days are parsed as by Date, in any order", () => {
  const [min, max] = [new Date("0000-01-01T00:00:00Z"), new Date("9999-12-31T23:59:59.999Z")];
  const times = fc.date({ min, max, noInvalidDate: true });
  const neighbours = times.chain((time) => fc.tuple(fc.constant(time), fc.integer({ min: -2_000, max: 2_000 })));
  fc.assert(
    fc.property(fc.array(neighbours), (all) => {
      for (const [time, ms] of all) {
        for (const each of [time, new Date(time.getTime() + ms)]) {
          expect(msOf(each.toISOString())).toBe(each.getTime());
          expect(toDay(each.getTime())).toBe(each.toISOString().slice(0, 10));
        }
      }
    }),
    { numRuns: 1_000 },
  );
});

test.each([
  "+010000-01-01T00:00:00.000Z",
  "2026-11-20T00:05:00Z",
  "2026-11-20T00:05:00.000000Z",
  "2026-11-20T01:05+01:00",
])("a time in the other format %s is parsed too", (time) => {
  expect(msOf(time)).toBe(Date.parse(time));
});

test("an invalid time is refused every time", () => {
  for (const time of ["2026-13-20T00:05:00.000Z", "2026-13-20T00:05:00.000Z", "2026-11-20"]) {
    expect(() => msOf(time)).toThrow(RangeError);
  }
  expect(msOf("2026-11-20T00:05:00.000Z")).toBe(Date.UTC(2026, 10, 20, 0, 5));
});
