// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { excerpt, oneLine, plainText, truncate } from "../../src/networks/sanitize-and-truncate-text.ts";
import { retryAfterMs, parseRetryAfter } from "../../src/networks/classify-answer.ts";

describe("plain text", () => {
  test("loses control characters and direction marks, keeps line breaks and tabs", () => {
    expect(plainText("a\0b\x1b[31m\r\nc\td\u202ee\x85f\x7f")).toBe("ab[31m\nc\tdef");
  });

  test("replaces half a surrogate pair", () => {
    expect(plainText("a\ud83d")).toBe("a\ufffd");
  });

  test("a one-line value cannot start another line", () => {
    expect(oneLine(" a\r\nTime: never\u2028b ")).toBe("a Time: never b");
  });

  test("truncation keeps the limit and splits no character", () => {
    expect(truncate("ab😀cd", 4)).toBe("ab…");
    expect(truncate("ab😀c", 5)).toBe("ab😀c");
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), fc.integer({ min: 2, max: 40 }), (text, max) => {
        const cut = truncate(text, max);
        return cut.length <= max && cut.isWellFormed() && (text.length > max || cut === text);
      }),
    );
  });
});

describe("an excerpt of a network's words", () => {
  test.each([
    ["Bad Request: chat not found", "Bad Request: chat not found"],
    [
      "Your enrolled account [1234567] does not have any credits",
      "Your enrolled account […] does not have any credits",
    ],
    ['User "jane doe" is gone', "User […] is gone"],
    ["chat -1001234567890 of @jane", "chat -[…] of […]"],
    ["token EAABsbCS1iHgBAKZCwZDZD12 expired", "token […] expired"],
    ["mail jane.doe@example.com", "mail […]"],
    ["two\r\nlines\0", "two lines"],
  ])("shows %j as %j", (theirs, ours) => {
    expect(excerpt(theirs)).toBe(ours);
  });

  test("is cut at 200 characters", () => {
    expect(excerpt("word ".repeat(20_000)).length).toBe(200);
  });
});

test.each<[string | number | null | undefined, number | undefined]>([
  ["30", 30_000],
  [30, 30_000],
  ["0.2", 1000],
  ["0", 1000],
  ["-5", 1000],
  ["7200", 7_200_000],
  ["86400", 86_400_000],
  ["86401", 86_400_000],
  ["9".repeat(400), 86_400_000],
  ["Wed, 21 Oct 2026 07:28:00 GMT", undefined],
  ["1e9", undefined],
  [Number.NaN, undefined],
  [Number.POSITIVE_INFINITY, undefined],
  ["", undefined],
  [null, undefined],
  [undefined, undefined],
])("Retry-After %p is %p ms", (seconds, ms) => {
  expect(retryAfterMs(seconds)).toBe(ms);
});

const ANSWERED = "Wed, 21 Oct 2026 07:28:00 GMT";

test.each<[string, string | undefined, number | undefined]>([
  ["Wed, 21 Oct 2026 07:28:30 GMT", ANSWERED, 30_000],
  ["Wed, 21 Oct 2026 09:28:00 GMT", ANSWERED, 7_200_000],
  ["Wednesday, 21-Oct-26 07:28:30 GMT", ANSWERED, 30_000],
  ["Wed Oct 21 07:28:30 2026", ANSWERED, 30_000],
  ["Sun Nov  1 07:28:00 2026", ANSWERED, 86_400_000],
  // These times have already passed: the network's clock is wrong, or the answer took long to arrive.
  ["Wed, 21 Oct 2026 07:27:00 GMT", ANSWERED, 1_000],
  ["Sunday, 06-Nov-94 08:49:37 GMT", ANSWERED, 1_000],
  ["7200", ANSWERED, 7_200_000],
  ["7200", undefined, 7_200_000],
  ["Wed, 21 Oct 2026 07:28:30 GMT", undefined, undefined],
  ["Wed, 21 Oct 2026 07:28:30 GMT", "yesterday", undefined],
  ["2026-10-21T07:28:30Z", ANSWERED, undefined],
  ["soon", ANSWERED, undefined],
])("Retry-After %p in an answer dated %p is %p ms", (retryAfter, date, ms) => {
  const headers = new Headers({ "retry-after": retryAfter, ...(date === undefined ? {} : { date }) });
  expect(parseRetryAfter(headers)).toBe(ms);
});
