import { expect, test } from "bun:test";
import { clicks, LINKS_MAX } from "../../projections/clicks.ts";
import type { Fact } from "../../src/journal.ts";
import { given } from "./recorded.ts";

function click(short_code: string, bot = false): Fact {
  const link = { domain: "go.example", short_code, original_url: "https://example.com" };
  return { type: "LinkClicked", data: { ...link, event: "click", bot, channels: [] } };
}

test("people and bots are counted apart, in all and of each link", () => {
  const state = given(clicks, [click("a"), click("a", true), click("b"), click("a")]);
  expect(state).toMatchObject({ total: 3, bots: 1, others: { clicks: 0, bots: 0 } });
  expect(state.links).toEqual(
    new Map([
      ["go.example/b", { clicks: 1, bots: 0, first: "2026-11-20T10:00:03.000Z", last: "2026-11-20T10:00:03.000Z" }],
      ["go.example/a", { clicks: 2, bots: 1, first: "2026-11-20T10:00:01.000Z", last: "2026-11-20T10:00:04.000Z" }],
    ]),
  );
});

test("beyond the limit, the link not clicked for longest is counted among the others", () => {
  const first = [click("kept"), click("gone"), click("gone", true), click("kept")];
  const more = Array.from({ length: LINKS_MAX - 1 }, (_, index) => click(`link${index}`));
  const state = given(clicks, [...first, ...more]);
  expect(state.links.size).toBe(LINKS_MAX);
  expect(state.links.has("go.example/gone")).toBe(false);
  expect(state.links.get("go.example/kept")).toMatchObject({ clicks: 2 });
  expect(state.others).toEqual({ clicks: 1, bots: 1 });
  expect([state.total, state.bots]).toEqual([LINKS_MAX + 2, 1]);
});
