// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { isClickOn, matchesEnding, parseDispatchFilter } from "../../src/delivery/dead-letter-filter.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const BERLIN = "Europe/Berlin";

describe("a filter", () => {
  test("without values selects all dead letters", () => {
    expect(parseDispatchFilter({}, BERLIN)).toEqual({ status: "dead" });
  });

  test("includes a whole day in the operator's time zone", () => {
    const { from = 0, to = 0 } = parseDispatchFilter({ from: "2026-07-01", to: "2026-07-01" }, BERLIN);
    expect([from, to].map((ms) => new Date(ms).toISOString())).toEqual([
      "2026-06-30T22:00:00.000Z",
      "2026-07-01T21:59:59.999Z",
    ]);
  });

  test("includes both ends of its time range", () => {
    const at = "2026-07-01T10:00:00.000Z";
    const place = { position: 1, requested_at: 1, at: Date.parse(at), failure: { asked: true } };
    const isIn = (from: string, to: string) => matchesEnding(parseDispatchFilter({ from, to }, "UTC"), place);
    expect(isIn(at, at)).toBe(true);
    expect(isIn("2026-07-01T10:00:00.001Z", "2026-07-02")).toBe(false);
    expect(isIn("2026-06-30", "2026-07-01T09:59:59.999Z")).toBe(false);
  });

  test.each([
    [{ asked: true, refused: true, status: 400 }, ["refused", "4xx", "400"]],
    [{ asked: true, refused: false, status: 503 }, ["exhausted", "5xx", "503"]],
    [{ asked: true, refused: false }, ["exhausted", "no_answer"]],
    [{ asked: false, refused: true }, ["refused", "no_request"]],
    [{ asked: true }, ["no_answer"]],
    [{ asked: false }, ["no_request"]],
  ])("matches the failure %j by the errors %j", (failure, wanted) => {
    const errors = ["refused", "exhausted", "no_answer", "no_request", "3xx", "4xx", "5xx", "400", "429", "503"];
    const place = { position: 1, requested_at: 1, at: 0, failure };
    expect(errors.filter((error) => matchesEnding(parseDispatchFilter({ error }, "UTC"), place))).toEqual(wanted);
  });

  test.each([
    ["go.example", true],
    ["GO.example", true],
    ["go.example/Ab", true],
    ["https://GO.example/Ab", true],
    ["go.example/ab", false],
    ["go.example/A", false],
    ["example", false],
  ])("for the link %s matches a click on Go.Example/Ab: %j", (text, isMatch) => {
    const { link = "" } = parseDispatchFilter({ link: text }, "UTC");
    const { data } = clickOf({ domain: "Go.Example", short_code: "Ab" });
    expect(isClickOn(link, { type: "LinkClicked", data } as Recorded)).toBe(isMatch);
    expect(isClickOn(link, { type: "MessageRequested", data: { text } } as Recorded)).toBe(false);
  });

  test.each([
    [
      { channel: "fax" },
      'a channel is one of ads, ads-openai, ads-snap, chat, messaging, webhook, webhook-NAME, not "fax"',
    ],
    [{ status: "pending" }, 'a status is one of dead, in_doubt, not "pending"'],
    [{ error: "50x" }, 'an error is one of refused, exhausted, no_answer, no_request, 5xx, 429, not "50x"'],
    [{ from: "2026-07-02", to: "2026-07-01" }, "the time range ends before it begins"],
    [{ to: "86" }, "a time range is between days or times, not positions such as 86"],
    [{ from: "soon" }, 'a moment is a position, a day or an ISO 8601 time, not "soon"'],
  ])("with %j is rejected with the reason", (texts, why) => {
    expect(() => parseDispatchFilter(texts, BERLIN)).toThrow(why);
  });
});
