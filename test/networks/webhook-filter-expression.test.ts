// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  compileFilter,
  FILTER_CHARS_MAX,
  FilterFailed,
  STEPS_MAX,
  type PostedEvent,
} from "../../src/networks/webhook-filter-expression.ts";

const EVENT = {
  type: "LinkClicked",
  timestamp: "2026-11-20T10:00:00.750Z",
  data: {
    position: 42,
    id: "019a9f00-0000-7000-8000-000000000001",
    stream: "link-go.example/welcome",
    version: 3,
    type: "LinkClicked",
    time: "2026-11-20T10:00:00.750Z",
    data: { event: "click", domain: "go.example", short_code: "Welcome", bot: false, channels: ["ads", "chat"] },
    meta: { caller: "shop", schema: 1 },
    hash: "ab",
  },
} as unknown as PostedEvent;

const ABANDONED = {
  ...EVENT,
  type: "DispatchAbandoned",
  data: {
    ...EVENT.data,
    data: {
      channel: "ads",
      requests: [
        { attempt: 8, refused: false },
        { attempt: 1, refused: true },
      ],
    },
  },
} as unknown as PostedEvent;

test.each([
  ["type == 'LinkClicked'", true],
  ["data.data.domain == 'other.example'", false],
  ["data.data.domain == 'go.example' && !(data.data.bot)", true],
  ["data.data.domain == 'it\\'s' || !starts_with(data.stream, 'link-x')", true],
  ["data.data.bot || data.position > `41`", true],
  ["data.data.bot", false],
  ["data.data.campaign", false],
  ["data.data.campaign == null || data.data.campaign == 'spring'", true],
  ["contains(data.data.channels, 'chat')", true],
  ["length(data.data.channels) > `2`", false],
  ["starts_with(data.stream, 'link-go.example/')", true],
  ["lower(data.data.short_code) == 'welcome'", true],
  ["data.data.channels[?@ == 'messaging']", false],
  ["data.data.channels[0] == 'ads'", true],
  ["data.meta.caller != 'shop'", false],
] as const)("the filter %s returns %p", (expression, isMatch) => {
  expect(compileFilter(expression)(EVENT)).toBe(isMatch);
});

test("a filter can test the requests of an outcome", () => {
  expect(compileFilter("data.data.requests[?refused]")(ABANDONED)).toBe(true);
  expect(compileFilter("data.data.requests[?attempt > `8`]")(ABANDONED)).toBe(false);
});

test("a filter that does not fit an event fails without naming its values", () => {
  const filter = compileFilter("starts_with(data.data.domain, 'go.')");
  expect(filter(EVENT)).toBe(true);
  const fault = (() => {
    try {
      return filter(ABANDONED);
    } catch (thrown) {
      return thrown;
    }
  })();
  expect(fault).toBeInstanceOf(FilterFailed);
  expect((fault as Error).message).toBe(
    "Invalid type: starts_with() expected argument 1 to be type (string) but received type null instead.",
  );
});

/** Returns a filter with nested literal lists; each level multiplies the work of evaluating it by ten. */
const nested = (levels: number): string =>
  levels === 0 ? "`true`" : `\`[1,1,1,1,1,1,1,1,1,1]\`[?${nested(levels - 1)}]`;

test.each([
  ["nested lists", nested(6)],
  ["a long text copied many times", Array.from({ length: 25 }, () => "contains(upper(to_string(@)), '§')").join("||")],
])("a filter that takes too many steps fails: %s", (_what, expression) => {
  const text = "a".repeat(200_000);
  const large = { ...EVENT, data: { ...EVENT.data, data: { text } } } as unknown as PostedEvent;
  expect(expression.length).toBeLessThanOrEqual(FILTER_CHARS_MAX);
  expect(() => compileFilter(expression)(large)).toThrow(`it takes more than ${STEPS_MAX} steps`);
  expect(compileFilter("type == 'LinkClicked'")(large)).toBe(true);
});

test("a filter can test all 1,000 requests of an event", () => {
  const requests = Array.from({ length: 1_000 }, (_, attempt) => ({ attempt, refused: false }));
  const many = { ...ABANDONED, data: { ...ABANDONED.data, data: { requests } } } as unknown as PostedEvent;
  expect(compileFilter("data.data.requests[?attempt > `998` && !(refused)]")(many)).toBe(true);
  expect(compileFilter("contains(to_string(@), '998')")(many)).toBe(true);
});

test("each filter in docs/webhooks.md compiles", () => {
  const text = readFileSync(join(import.meta.dirname, "../../docs/webhooks.md"), "utf8");
  const [, section = ""] = /^## A filter\n(.*?)^## /ms.exec(text) ?? [];
  const rows = [...section.matchAll(/^\| (`+) ?(.+?) ?\1 +\|/gm)].map(([, , cell = ""]) => cell.replaceAll("\\|", "|"));
  expect(rows.length).toBeGreaterThan(3);
  for (const expression of rows)
    expect([expression, typeof compileFilter(expression)]).toEqual([expression, "function"]);
});

describe("an invalid filter", () => {
  test.each([
    ["", "not valid JMESPath from character 1 on"],
    ["data.data.domain = = 'a'", "not valid JMESPath from character 17 on"],
    ["(data.data.bot", "not valid JMESPath from character 1 on"],
    ["data.data.bot && 'open", "not valid JMESPath from character 18 on: a quote has no end"],
    // This expression means (!data).data.bot, which is never true.
    ["!data.data.bot", "! binds tighter than what follows: write !(…)"],
    ["data.data.requests[?!answer.status]", "! binds tighter than what follows: write !(…)"],
    ["!data.data.channels[]", "! binds tighter than what follows: write !(…)"],
    ["exec(data)", "filters have no function exec()"],
    ["contains(data)", "contains() takes 2 arguments"],
    ["length()", "length() takes 1 argument"],
    // Expressions whose result may be many times as large as their input.
    ["[@, @] | [@, @]", "a filter cannot use MultiSelectList"],
    ["{a: @, b: @}", "a filter cannot use MultiSelectHash"],
    ["data.data.requests[?length($.data.data.requests[?@ != $]) > `1`]", "a filter cannot use Root"],
    ["let $all = data in $all", "a filter cannot use LetExpression"],
    ["map(&data, @)", "filters have no function map()"],
    ["data.position + `1` > `2`", "a filter cannot use Arithmetic"],
    ["data.data.bot ? data : type", "a filter cannot use Ternary"],
    ["x".repeat(FILTER_CHARS_MAX + 1), `it has ${FILTER_CHARS_MAX + 1} characters`],
  ])("%p is refused", (expression, said) => {
    expect(() => compileFilter(expression)).toThrow(said);
  });
});
