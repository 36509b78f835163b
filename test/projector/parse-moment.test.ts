// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { ServiceError } from "../../src/platform/service-error.ts";
import { parseMoment } from "../../src/projector/parse-moment.ts";

function refusal(text: string, timezone = "UTC"): string {
  try {
    parseMoment(text, timezone);
  } catch (fault) {
    if (fault instanceof ServiceError && fault.kind === "usage") return fault.message;
    throw fault;
  }
  throw new Error("it was accepted");
}

const until = (text: string, timezone = "UTC"): string | undefined => parseMoment(text, timezone).until?.toISOString();

test("no text means now, and digits are a position, including 0", () => {
  expect(parseMoment(undefined, "UTC")).toEqual({});
  expect(parseMoment("0", "UTC")).toEqual({ to: 0 });
  expect(parseMoment("57", "UTC")).toEqual({ to: 57 });
});

test("a time with Z or an offset means the same in every time zone", () => {
  for (const timezone of ["UTC", "Asia/Tokyo"]) {
    expect(until("2026-11-21T09:00:00.123Z", timezone)).toBe("2026-11-21T09:00:00.123Z");
    expect(until("2026-11-21 09:00z", timezone)).toBe("2026-11-21T09:00:00.000Z");
    expect(until("2026-11-21T09:00+02:00", timezone)).toBe("2026-11-21T07:00:00.000Z");
    expect(until("2026-11-21T09:00:30,5-0130", timezone)).toBe("2026-11-21T10:30:30.500Z");
  }
});

test("digits beyond milliseconds are cut off", () => {
  expect(until("2026-11-21T09:00:00.123999Z")).toBe("2026-11-21T09:00:00.123Z");
});

test("a time without an offset is in the given time zone", () => {
  expect(until("2026-11-21T09:00", "Asia/Tokyo")).toBe("2026-11-21T00:00:00.000Z");
  expect(until("2026-07-21 09:00:30", "Europe/Berlin")).toBe("2026-07-21T07:00:30.000Z");
});

describe("a day means its last millisecond in the time zone", () => {
  test.each([
    ["2026-11-21", "UTC", "2026-11-21T23:59:59.999Z"],
    ["2026-11-21", "Asia/Tokyo", "2026-11-21T14:59:59.999Z"],
    ["2026-11-21", "America/New_York", "2026-11-22T04:59:59.999Z"],
    ["2028-02-29", "UTC", "2028-02-29T23:59:59.999Z"],
    // These days have 25 and 23 hours, because of daylight saving time. The third one is the day before a day that its
    // zone skipped.
    ["2026-10-25", "Europe/Berlin", "2026-10-25T22:59:59.999Z"],
    ["2026-03-29", "Europe/Berlin", "2026-03-29T21:59:59.999Z"],
    ["2011-12-29", "Pacific/Apia", "2011-12-30T09:59:59.999Z"],
  ])("%s in %s", (text, timezone, expected) => {
    expect(until(text, timezone)).toBe(expected);
  });
});

test.each(["2026-10-25T02:30", "2026-03-29T02:30"])("%s, which occurs twice or never in Berlin, is refused", (text) => {
  expect(refusal(text, "Europe/Berlin")).toBe(
    `clocks in Europe/Berlin change at ${text}, so that it occurs twice or never: add an offset, such as +02:00`,
  );
  expect(until(text)).toBe(`${text}:00.000Z`);
});

test.each(["2026-02-30", "2026-02-29T10:00Z", "2026-13-01T10:00", "2026-11-21T25:00", "2026-11-21T10:61Z"])(
  "the nonexistent time %s is refused",
  (text) => expect(refusal(text)).toBe(`there is no such time as ${text}`),
);

test.each(["", "-1", "+1", "1.5", "1e3", "yesterday", "21.11.2026", "11/21/2026", "2026-11", "10:00", "2026-11-21T10"])(
  "the invalid or ambiguous moment %j is refused",
  (text) => {
    expect(refusal(text)).toBe(`a moment is a position, a day or an ISO 8601 time, not "${text}"`);
  },
);

test("a refusal shortens the text and escapes its control characters", () => {
  expect(refusal(`\u001b[2J${"x".repeat(1000)}`)).toBe(
    `a moment is a position, a day or an ISO 8601 time, not "\\u001b[2J${"x".repeat(36)}"`,
  );
});
