import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { createStopWords } from "../../src/outreach/stop-words.ts";

const DEFAULTS = ["stop", "stopall", "unsubscribe", "cancel", "end", "quit", "optout", "opt out", "opt-out"];
const isOptOut = createStopWords(DEFAULTS);

describe("asks to be left alone", () => {
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
  ])("%p", (text) => {
    expect(isOptOut(text)).toBe(true);
  });
});

describe("does not", () => {
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
  ])("%p", (text) => {
    expect(isOptOut(text)).toBe(false);
  });
});

test("words of other scripts, apostrophes of any kind, and characters with a meaning in patterns", () => {
  const other = createStopWords(["停止", "don’t write", "nein danke", "c++", " ", "หยุด"]);
  expect(
    ["停止してください", "please don't  WRITE again", "Nein, danke", "NEIN DANKE!", "no c++", "ได้โปรดหยุดเถอะ"].map(
      other,
    ),
  ).toEqual([true, true, false, true, true, true]);
  expect(other("anything else")).toBe(false);
});

test("a stop word is found whatever stands around it, but letters and digits", () => {
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

test("no text makes it fail or takes it long", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 2_000 }), (text) => {
      expect(typeof isOptOut(text)).toBe("boolean");
    }),
  );
  expect(isOptOut("s t o p ".repeat(20_000))).toBe(false);
});
