// These tests call the code directly.
import { expect, test } from "bun:test";
import { parseTimezone } from "../../src/platform/parse-timezone.ts";

test.each([
  ["Europe/Berlin", "Europe/Berlin"],
  ["europe/BERLIN", "Europe/Berlin"],
  ["America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"],
  ["Berlin", undefined],
  ["Mars/Base", undefined],
  ["+02:00", undefined],
  ["", undefined],
])("%p is the zone %p, also when asked again", (raw, wanted) => {
  expect([parseTimezone(raw), parseTimezone(raw)]).toEqual([wanted, wanted]);
});
