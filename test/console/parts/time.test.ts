// These tests call the code directly.
import { expect, test } from "bun:test";
import { formatTime } from "../../../src/console/parts/time.tsx";

const NOW = Date.parse("2026-11-26T11:42:00Z");
const MORNING = "2026-11-26T08:04:11Z";

/** Replaces the narrow spaces that some languages have before AM and PM by plain ones. */
const plain = (text: string): string => text.replaceAll(/\s/g, " ");

test.each([
  ["en-GB", "short", "26 Nov, 08:04"],
  ["en-GB", "weekday", "Thu 26 Nov, 08:04"],
  ["en-GB", "clock", "08:04"],
  ["en-GB", "seconds", "08:04:11"],
  ["en-GB", "date", "26 Nov"],
  ["en-GB", "day", "Today, Thursday 26 November"],
  ["en-GB", "full", "Today, 08:04:11 UTC · 3 h 37 min ago"],
  ["en-GB", "age", "3 h 37 min ago"],
  ["en-US", "short", "Nov 26, 8:04 AM"],
  ["en-US", "clock", "8:04 AM"],
  ["de", "short", "26. Nov., 08:04"],
  ["de", "day", "Today, Thursday 26 November"],
] as const)("in %s, the format %s is %s", (language, as, expected) => {
  expect(plain(formatTime(MORNING, as, { language, timezone: "UTC", now: NOW }))).toBe(expected);
});

test.each([
  ["short", "2025-11-26T08:04:11Z", "26 Nov 2025, 09:04"],
  ["day", "2026-11-25T22:59:00Z", "Yesterday, Wednesday 25 November"],
  ["day", "2026-11-25T23:01:00Z", "Today, Thursday 26 November"],
  ["day", "2026-11-24T12:00:00Z", "Tuesday 24 November"],
  ["full", "2026-11-25T08:00:00Z", "Yesterday, 09:00:00 CET · 1 day ago"],
  ["full", "2026-11-11T08:00:00Z", "11 Nov, 09:00:00 CET · 15 days ago"],
  ["full", "2026-09-01T08:00:00Z", "1 Sept, 10:00:00 CEST"],
  ["age", "2026-11-26T11:42:00.200Z", "now"],
  ["age", "2026-11-27T00:00:00Z", "in 12 h 18 min"],
] as const)("another year, day or time zone changes the format %s of %s to %s", (as, at, expected) => {
  expect(plain(formatTime(at, as, { language: "en-GB", timezone: "Europe/Berlin", now: NOW }))).toBe(expected);
});
