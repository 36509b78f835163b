// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { createStopWords, createWishReader } from "../../src/outreach/detect-opt-out-replies.ts";
import { REPLIES } from "./sample-replies-by-language.ts";

const DEFAULTS = ["stop", "stopall", "unsubscribe", "cancel", "end", "quit", "optout", "opt out", "opt-out"];
const isOptOut = createStopWords(DEFAULTS);

describe("a text with a stop word", () => {
  test.each([
    "STOP",
    "Stop!!",
    "please stop.",
    "Please stop sending me these messages, I never asked for any of them and do not want more.",
    "don't stop",
    "stop\nthanks",
    "**unsubscribe**",
    "Un\u00adsub\u200bscribe",
    "\uff33\uff54\uff4f\uff50",
    "opt  \u00a0 out",
    "opt\u2011out now",
    "STOP🛑",
    "¡stop!",
    "opt\u2212out",
    "STOP\ufe0f\u{1f64f}\u{1f3fd}",
    "\u{1d412}\u{1d413}\u{1d40e}\u{1d40f}",
    "_stop_",
  ])("is recognized: %p", (text) => {
    expect(isOptOut(text)).toBe(true);
  });
});

describe("a text without a stop word", () => {
  test.each([
    "Where is my stopwatch?",
    "nonstop",
    "stopping by",
    "Friendly",
    "endless",
    "",
    "opto ut",
    "stöp",
    "stop\u0308",
  ])("is no opt-out: %p", (text) => {
    expect(isOptOut(text)).toBe(false);
  });
});

test("a stop word may have another script, an apostrophe or a pattern's characters", () => {
  const other = createStopWords(["停止", "don’t write", "nein danke", "c++", " ", "หยุด"]);
  expect(
    ["停止してください", "please don't  WRITE again", "Nein, danke", "NEIN DANKE!", "no c++", "ได้โปรดหยุดเถอะ"].map(
      other,
    ),
  ).toEqual([true, true, false, true, true, true]);
  expect(other("anything else")).toBe(false);
});

test.each(["don't write", "don’t write", "don`t write", "don´t write", "don‛t write", "don′t write", "don＇t write"])(
  "all kinds of apostrophes are equal: %p",
  (text) => {
    expect(createStopWords(["don't write"])(text)).toBe(true);
    expect(createStopWords([text])("Please DON'T write")).toBe(true);
  },
);

test("Turkish capitals and Korean endings do not hide a stop word", () => {
  const other = createStopWords(["iptal", "수신거부", "그만"]);
  expect(["İPTAL", "İptal et", "iptal", "수신거부합니다", "그만 보내세요", "iptali"].map(other)).toEqual([
    true,
    true,
    true,
    true,
    true,
    false,
  ]);
});

test("a stop word is found between any characters but letters and digits", () => {
  const around = fc
    .string({ unit: "grapheme", maxLength: 12 })
    .filter((text) => !/[\p{L}\p{M}\p{N}\p{Default_Ignorable_Code_Point}]/u.test(text.normalize("NFKC")));
  fc.assert(
    fc.property(around, fc.constantFrom(...DEFAULTS), around, (before, word, after) => {
      expect(isOptOut(`${before}${word.toUpperCase()}${after}`)).toBe(true);
    }),
    { numRuns: 1000 },
  );
});

test("arbitrary and long texts cause no exception", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 2_000 }), (text) => {
      expect(typeof isOptOut(text)).toBe("boolean");
    }),
  );
  expect(isOptOut("s t o p ".repeat(20_000))).toBe(false);
});

test.each([
  ["stop tracking", false, true],
  ["Please DON’T  track me", false, true],
  ["stop tracking me, and stop writing", true, true],
  ["stop tracking. unsubscribe", true, true],
  ["stop\ntracking", true, true],
  ["stop, tracking", true, false],
  ["nonstop tracking", false, false],
  ["opt stop tracking out", false, true],
  ["stop", true, false],
])("opt-out and tracking opt-out are distinguished in %j", (text, isLeavingAlone, isTracking) => {
  const tracking = ["stop tracking", "don't track"];
  expect(createStopWords(DEFAULTS, tracking)(text)).toBe(isLeavingAlone);
  const isTrackingOptOut = createStopWords(tracking);
  expect(isTrackingOptOut(text)).toBe(isTracking);
});

describe("the wish in a reply", () => {
  const readWish = createWishReader(DEFAULTS, ["stop tracking", "don't track"]);

  test.each([
    ["STOP", "stop"],
    ["Hi! Please, stop 🙏", "stop"],
    ["**Quit**, thanks", "stop"],
    ["stop, end, quit", "stop"],
    ["STOP\ufe0f\u{1f64f}\u{1f3fd}", "stop"],
    ["I want to opt out of this", "stop"],
    ["Please unsubscribe me", "stop"],
    ["Can we talk at the end of the week?", "doubt"],
    ["don't stop", "doubt"],
    ["please stop sending me this", "doubt"],
    ["stop 2", "doubt"],
    ["stop tracking me, and stop writing", "doubt"],
    ["stop tracking", undefined],
    ["weekend", undefined],
    ["please", undefined],
    ["", undefined],
  ] as const)("%j is read as %p", (text, wish) => {
    expect(readWish(text)).toBe(wish);
  });

  const all = Object.values(REPLIES);
  const merged = [...new Set(all.flatMap(({ words }) => words))];

  test("is found in 200 opt-outs with a stop word, and suppresses none of 100 other replies", () => {
    const figures = { stop: 0, other: 0, suppressed: 0, held: 0, taken: 0 };
    for (const { words, stop, other } of all) {
      figures.stop += stop.length;
      figures.other += other.length;
      for (const list of [words, merged]) {
        const [read, hasWord] = [createWishReader(list), createStopWords(list)];
        expect(stop.filter((text) => hasWord(text) && read(text) === undefined)).toEqual([]);
        expect(other.filter((text) => read(text) === "stop")).toEqual([]);
      }
      const read = createWishReader(merged);
      figures.suppressed += stop.filter((text) => read(text) === "stop").length;
      figures.held += stop.filter((text) => read(text) === "doubt").length;
      figures.taken += other.filter((text) => createStopWords(merged)(text)).length;
    }
    // `taken` counts the other messages that a former rule would have taken for opt-outs: it searched for stop words
    // anywhere in the text.
    expect(figures).toEqual({ stop: 200, other: 100, suppressed: 157, held: 29, taken: 64 });
  });

  test("is stop or doubt exactly if the text has a stop word", () => {
    const parts = fc.constantFrom(...merged, ...all.flatMap(({ stop, other }) => [...stop, ...other]));
    const [read, hasWord] = [createWishReader(merged), createStopWords(merged)];
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 3 }), fc.constantFrom(" ", "\n", "", ", "), (texts, between) => {
        const text = texts.join(between);
        expect(read(text) !== undefined).toBe(hasWord(text));
      }),
    );
  });
});
