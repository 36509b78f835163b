// These tests call the code directly.
import { expect, test } from "bun:test";
import { periodsOf, type PeriodsQuery } from "../../projections/sum-quarters-to-hours-and-days.ts";
import { quarterAt, type Quarters } from "../../projections/count-by-quarter-hour.ts";

type Counts = Record<"all", number>;

const none = (): Counts => ({ all: 0 });

function counted(times: readonly string[], query: Omit<PeriodsQuery, "until"> & { readonly until: string }) {
  const quarters: Quarters<Counts> = new Map();
  for (const time of times) quarterAt(quarters, Date.parse(time), none).all++;
  const periods = periodsOf(quarters, { ...query, until: Date.parse(query.until) }, none);
  return periods.map(({ start, counts }) => [new Date(start).toISOString(), counts.all]);
}

test("days follow the time zone and include empty ones", () => {
  const times = ["2026-11-18T18:29:59Z", "2026-11-18T18:30:00Z", "2026-11-20T18:29:59Z", "2026-11-20T18:45:00Z"];
  const query = { unit: "day", count: 4, until: "2026-11-20T19:00:00Z", timezone: "Asia/Kolkata" } as const;
  expect(counted(times, query)).toEqual([
    ["2026-11-17T18:30:00.000Z", 1],
    ["2026-11-18T18:30:00.000Z", 1],
    ["2026-11-19T18:30:00.000Z", 1],
    ["2026-11-20T18:30:00.000Z", 1],
  ]);
});

test("counts before the first period or after the requested moment are left out", () => {
  const times = ["2026-11-20T08:59:00Z", "2026-11-20T09:00:00Z", "2026-11-20T10:46:00Z"];
  const query = { unit: "hour", count: 2, until: "2026-11-20T10:30:00Z", timezone: "Etc/UTC" } as const;
  expect(counted(times, query)).toEqual([
    ["2026-11-20T09:00:00.000Z", 1],
    ["2026-11-20T10:00:00.000Z", 0],
  ]);
});

test("a day of 25 hours is one day, and a repeated hour is two hours", () => {
  const timezone = "Europe/Berlin";
  const until = "2026-10-26T01:00:00Z";
  expect(counted(["2026-10-24T22:00:00Z", "2026-10-25T22:59:00Z"], { unit: "day", count: 2, until, timezone })).toEqual(
    [
      ["2026-10-24T22:00:00.000Z", 2],
      ["2026-10-25T23:00:00.000Z", 0],
    ],
  );
  const hours = { unit: "hour", count: 3, until: "2026-10-25T02:10:00Z", timezone } as const;
  expect(counted(["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"], hours)).toEqual([
    ["2026-10-25T00:00:00.000Z", 1],
    ["2026-10-25T01:00:00.000Z", 1],
    ["2026-10-25T02:00:00.000Z", 0],
  ]);
});
