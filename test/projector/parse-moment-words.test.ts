// These tests call the code directly.
import { expect, test } from "bun:test";
import { readMomentWords } from "../../src/projector/parse-moment-words.ts";
import { parseMoment } from "../../src/projector/parse-moment.ts";
import { formatTime } from "../../src/console/parts/time.tsx";

const NOW = Date.parse("2026-11-26T11:42:30Z");
const read = (text: string, language = "en-GB", timezone = "UTC") =>
  readMomentWords(text, { language, timezone, now: NOW });

test.each([
  ["now", ""],
  ["yesterday", "2026-11-25"],
  ["Today", "2026-11-26"],
  ["9:41", "2026-11-26T09:41Z"],
  ["9:41 pm", "2026-11-25T21:41Z"],
  ["12:05 AM", "2026-11-26T00:05Z"],
  ["yesterday 18:00", "2026-11-25T18:00Z"],
  ["an hour ago", "2026-11-26T10:42Z"],
  ["3 days ago", "2026-11-23T11:42Z"],
  ["run 35", { run: 35 }],
  ["Run #7", { run: 7 }],
  ["24 Nov", "2026-11-24"],
  ["24 November 2025, 14:00", "2025-11-24T14:00Z"],
  ["Nov 24, 2:00 PM", "2026-11-24T14:00Z"],
  ["Tue 24 Nov, 14:00", "2026-11-24T14:00Z"],
  ["3 December", "2025-12-03"],
  ["24/11/2026", "2026-11-24"],
  ["24.11.", "2026-11-24"],
] as const)("%p is a moment: %p", (text, expected) => {
  expect(read(text)).toEqual(expected);
});

test.each([
  ["24.11.2026 14:30", "2026-11-24T14:30Z"],
  ["5.11.2026", "2026-11-05"],
  ["24/11/2026", "2026-11-24"],
  ["11/24/2026", "2026-11-24"],
  ["5/5/2026", "2026-05-05"],
  ["yesterday 14:30", "2026-11-25T14:30Z"],
  ["tuesday", "2026-11-24"],
  ["Thursday", "2026-11-19"],
  ["Fri 9:15", "2026-11-20T09:15Z"],
] as const)("%p is the same moment in each language: %p", (text, expected) => {
  for (const language of ["en-GB", "en-US", "de"])
    expect([language, read(text, language)]).toEqual([language, expected]);
});

test("a date that may be two days is none, and its reader is asked which", () => {
  for (const language of ["en-GB", "en-US"]) expect(read("5/6/2026", language)).toBeUndefined();
  expect(() => parseMoment("5/6/2026 14:30", "UTC")).toThrow(
    'which day is "5/6/2026 14:30"? Write the month as a word, or the date as in 2026-11-21',
  );
});

test.each(["", "soon", "31 Feb", "25:00", "run", "24 Nov and more", "1/2/3/4", "13:77", "x".repeat(10_000), "5"])(
  "%p is no moment",
  (text) => {
    expect(read(text)).toBeUndefined();
  },
);

test.each([
  ["Samstag, 21. November, 20:15", "de"],
  ["samedi 21 nov. 20:15", "fr"],
] as const)("the name of a day with the letters of am is none of its halves: %p", (text, language) => {
  expect(read(text, language)).toBe("2026-11-21T20:15Z");
});

test("numbers are in the order of the reader's language, and times in the quota's time zone", () => {
  expect(read("11/9", "en-US")).toBe("2026-11-09");
  expect(read("11/9", "en-GB")).toBe("2026-09-11");
  expect(read("24 Nov, 14:00", "en-GB", "Europe/Berlin")).toBe("2026-11-24T13:00Z");
});

test.each(["en-GB", "en-US", "de", "fr", "fr-CA", "es", "it", "pl", "ja", "ko", "zh", "tr", "pt-BR"])(
  "each moment that %s writes can be read",
  (language) => {
    for (const month of Array.from({ length: 12 }, (_, number) => number)) {
      for (const hour of [0, 8, 12, 17]) {
        const at = Date.UTC(2025, month, 13, hour, 4);
        const text = formatTime(at, "short", { language, timezone: "UTC", now: NOW });
        expect([text, read(text, language)]).toEqual([text, new Date(at).toISOString().replace(":00.000Z", "Z")]);
      }
    }
  },
);
