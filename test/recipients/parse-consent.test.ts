// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  CONSENT_MEMBERS,
  CONSENT_SOURCE_CHARS_MAX,
  CONSENT_TEXT_CHARS_MAX,
  isFault,
  parseConsent,
  parseStatedConsent,
} from "../../src/recipients/parse-consent.ts";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");

type Given = Partial<Record<(typeof CONSENT_MEMBERS)[number], string>>;
const parse = (given: Given) => parseConsent((member) => given[member], NOW);
const reasonFor = (given: Given): string => {
  const parsed = parse(given);
  return isFault(parsed) ? parsed.reason : "accepted";
};

describe("a record of consent", () => {
  test("keeps its values as given, without blank ones", () => {
    const given = {
      basis: "opt_in",
      consent_at: "2026-03-02",
      consent_source: "https://shop.example/form?campaign=a",
      consent_text: "Yes, send me news (version 3)",
      tracking: "granted",
      tracking_at: "2026-03-02",
      tracking_source: "trade fair",
      tracking_text: "version 3",
    } as const;
    expect(parse(given)).toEqual(given);
    expect(parse({ basis: " ", consent_at: "", tracking: "\t", tracking_text: " " })).toEqual({});
    expect(parse({ tracking: "denied", tracking_source: " mail " })).toEqual({
      tracking: "denied",
      tracking_source: "mail",
    });
  });

  test.each([
    ["Opt-In", "Granted", { basis: "opt_in", tracking: "granted" }],
    ["DM first", "DENIED", { basis: "dm_first", tracking: "denied" }],
    ["none", "unknown", { basis: "none", tracking: "unknown" }],
  ] as const)("accepts its words in any case: %s, %s", (basis, tracking, wanted) => {
    expect(parse({ basis, tracking })).toEqual(wanted);
  });

  test.each([
    ["opted in", "opt_in"],
    ["Opted_In", "opt_in"],
    ["wrote first", "dm_first"],
    ["No consent", "none"],
  ] as const)("accepts the console's words for a basis: %s", (basis, wanted) => {
    expect(parse({ basis })).toEqual({ basis: wanted });
    expect(parseStatedConsent({ basis })).toEqual({ basis: wanted });
  });

  test("that is stated for all rows is checked once, before the first row", () => {
    expect(parseStatedConsent({ basis: " ", consent_source: "" })).toEqual({});
    expect(parseStatedConsent({ consent_source: " Newsletter form " })).toEqual({ consent_source: "Newsletter form" });
    for (const given of [{ basis: "yes" }, { consent_source: "ftp://form" }, { consent_source: "x".repeat(501) }])
      expect(() => parseStatedConsent(given)).toThrow("for all rows: ");
  });

  test.each([
    ["2026-03-02T10:15:00+01:00", "2026-03-02T09:15:00.000Z"],
    ["2026-03-02 10:15Z", "2026-03-02T10:15:00.000Z"],
    ["2026-03-02T10:15:00.123456789-05:00", "2026-03-02T15:15:00.123Z"],
    // In UTC, the day of the test is 20 November. In the earliest time zone it is already the 21st, and the clock of a
    // form's server may be some minutes fast, so these times are accepted.
    ["2026-11-21", "2026-11-21"],
    ["2026-11-20T10:04:00Z", "2026-11-20T10:04:00.000Z"],
    ["1995-01-01", "1995-01-01"],
    ["2026/3/2", "2026-03-02"],
    ["2026. 3. 2.", "2026-03-02"],
    ["03.03.2026", "2026-03-03"],
  ])("accepts the time %s", (consent_at, wanted) => {
    expect(parse({ basis: "opt_in", consent_at })).toEqual({ basis: "opt_in", consent_at: wanted });
  });

  test.each([
    ["02.03.2026", "dmy", { consent_at: "2026-03-02" }],
    ["02.03.2026", "mdy", { consent_at: "2026-02-03" }],
    ["2026-03-02", "mdy", { consent_at: "2026-03-02" }],
    ["25.02.2026", "mdy", { reason: "consent_at 25.02.2026 is no date in the order mdy" }],
    ["2/3/2026 10:15:00", "mdy", { reason: expect.stringContaining("keep the day alone, 2026-02-03") }],
  ] as const)("reads %s with dates in the order %s", (consent_at, order, wanted) => {
    const given: Given = { basis: "opt_in", consent_at };
    expect(parseConsent((member) => given[member], NOW, order)).toMatchObject(wanted);
  });

  const NO_TIME = "consent_at is neither a day such as 2026-03-02 nor a time with its offset";
  test.each([
    ["32.01.2026", "consent_at 32.01.2026 is no day of the calendar"],
    ["02.03.2026", "consent_at 02.03.2026 is ambiguous, 2026-03-02 or 2026-02-03: write it so, or name"],
    ["2/3/2026", "consent_at 2/3/2026 is ambiguous, 2026-03-02 or 2026-02-03"],
    ["2-3-2026 10:15", "consent_at 2-3-2026 10:15 is ambiguous"],
    ["25.02.2026", "consent_at 25.02.2026 is not written as 2026-02-25: write it so, or name"],
    ["3/2/26", "consent_at 3/2/26 has a short year"],
    ["46083", "consent_at 46083 is a spreadsheet's number for a date"],
    ["46083,5", "consent_at 46083,5 is a spreadsheet's number for a date"],
    ["2026-02-30", "consent_at 2026-02-30 is no day of the calendar"],
    ["0000-00-00", "consent_at 0000-00-00 is no day of the calendar"],
    ["2026-03-02T10:15:00", NO_TIME],
    ["2026-03-02T25:15:00Z", NO_TIME],
    ["yesterday", NO_TIME],
    ["1772409600", NO_TIME],
    [`2026-03-02T10:15:00Z${"[foo=bar]".repeat(3)}`, NO_TIME],
    ["1970-01-01", "consent_at is before 1995-01-01"],
    ["1994-12-31T23:59:59Z", "consent_at is before 1995-01-01"],
    ["2026-11-22", "consent_at is in the future"],
    ["2026-11-20T10:06:00Z", "consent_at is in the future"],
    ["2027-01-01", "consent_at is in the future"],
  ])("refuses the time %s", (consent_at, reason) => {
    expect(reasonFor({ basis: "opt_in", consent_at })).toStartWith(reason);
  });

  test.each([
    ["HTTPS://shop.example/form", "accepted"],
    ["http://shop.example", "accepted"],
    ["form 7", "accepted"],
    ["ftp://shop.example/form", "tracking_source is no http or https address"],
    ["https://", "tracking_source is no http or https address"],
    ["https:///", "tracking_source is no http or https address"],
    ["javascript://shop.example/%0aalert(1)", "tracking_source is no http or https address"],
    ["https://ann:secret@shop.example/", "tracking_source has a user name or a password in its address"],
    ["https://ann@shop.example/", "tracking_source has a user name or a password in its address"],
    ["x".repeat(CONSENT_SOURCE_CHARS_MAX), "accepted"],
    ["x".repeat(CONSENT_SOURCE_CHARS_MAX + 1), "tracking_source has more than 500 characters"],
  ])("validates the source %s", (tracking_source, reason) => {
    expect(reasonFor({ tracking: "granted", tracking_source })).toBe(reason);
  });

  test.each([
    [{ basis: "maybe" }, 'basis must be dm_first, opt_in or none; got "maybe"'],
    [{ tracking: "yes" }, 'tracking must be granted, denied or unknown; got "yes"'],
    [{ tracking: "y".repeat(50) }, `tracking must be granted, denied or unknown; got "${"y".repeat(40)}…"`],
    [
      { basis: "opt_in", consent_text: "x".repeat(CONSENT_TEXT_CHARS_MAX + 1) },
      "consent_text has more than 1000 characters",
    ],
    [{ tracking: "granted", tracking_text: "x".repeat(1_001) }, "tracking_text has more than 1000 characters"],
    [{ consent_at: "2026-03-02" }, "consent_at needs basis beside it"],
    [{ tracking: "granted", consent_source: "form" }, "consent_source needs basis beside it"],
    [{ basis: "opt_in", tracking_text: "version 3" }, "tracking_text needs tracking beside it"],
  ])("refuses %p", (given, reason) => {
    expect(reasonFor(given)).toBe(reason);
  });

  test("from any input parses to itself, or is a fault that names the member", () => {
    const value = fc.option(
      fc.oneof(
        fc.string({ unit: "binary", maxLength: 20 }),
        fc.constantFrom(
          "opt_in",
          "granted",
          "none",
          "2026-03-02",
          "2026-03-02T10:15+01:00",
          "https://shop.example/",
          "mail",
        ),
      ),
      { nil: undefined },
    );
    const members = fc.record(Object.fromEntries(CONSENT_MEMBERS.map((member) => [member, value])));
    fc.assert(
      fc.property(members, (given) => {
        const parsed = parse(given);
        if (isFault(parsed)) expect(parsed.reason).toStartWith(`${parsed.member} `);
        else expect(parse(parsed)).toEqual(parsed);
      }),
      { numRuns: 500 },
    );
  });
});
