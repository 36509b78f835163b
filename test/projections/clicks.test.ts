// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { clicks, spellingsOf } from "../../projections/clicks.ts";
import { byLastClick, COUNTED_LINKS_MAX } from "../../projections/drop-oldest-links.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { given } from "../harness/in-process/number-and-fold-events.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const click = (short_code: string, bot = false): NewEvent => clickOf({ short_code, bot });

test("people and bots are counted separately, in total and per link", () => {
  const state = given(clicks, [click("a"), click("a", true), click("b"), click("a")]);
  expect(state).toMatchObject({ total: 3, bots: 1, others: { clicks: 0, bots: 0 } });
  const at = (second: number): string => `2026-11-20T10:00:0${second}.000Z`;
  expect(byLastClick(state.links)).toEqual([
    ["go.example/a", { clicks: 2, bots: 1, first: at(1), last: at(4), last_position: 4 }],
    ["go.example/b", { clicks: 1, bots: 0, first: at(3), last: at(3), last_position: 3 }],
  ]);
});

test("beyond the limit, the tenth of the links that was clicked longest ago is counted as a sum", () => {
  const first = [click("kept"), click("gone"), click("gone", true)];
  const more = Array.from({ length: COUNTED_LINKS_MAX - 2 }, (_, index) => click(`link${index}`));
  const full = [...first, ...more, click("kept")];
  expect(given(clicks, full)).toMatchObject({ others: { clicks: 0, bots: 0 } });
  const state = given(clicks, [...full, click("one-more")]);
  expect(state.links.size).toBe(COUNTED_LINKS_MAX + 1 - COUNTED_LINKS_MAX / 10);
  const isKept = ["kept", "one-more", "gone", "link0", "link998", "link999"].map((code) =>
    state.links.has(`go.example/${code}`),
  );
  expect(isKept).toEqual([true, true, false, false, false, true]);
  expect(state.links.get("go.example/kept")).toMatchObject({ clicks: 2 });
  expect(state.others).toEqual({ clicks: COUNTED_LINKS_MAX / 10, bots: 1 });
  expect([state.total, state.bots]).toEqual([COUNTED_LINKS_MAX + 2, 1]);
});

test("a link clicked again keeps its place in the order", () => {
  const state = given(clicks, [click("a"), click("b"), click("a")]);
  expect([...state.links.keys()]).toEqual(["go.example/a", "go.example/b"]);
});

test("clicks in different spellings count for one link, which keeps the spellings", () => {
  const spellings = [
    ["go.example", "a"],
    ["GO.example", "a"],
    ["go.example:443", "/a"],
    ["GO.example", "a"],
    ["go.example.", "%61?utm_source=dm"],
  ] as const;
  const state = given(
    clicks,
    spellings.map(([domain, short_code]) => clickOf({ domain, short_code })),
  );
  expect([...state.links.keys()]).toEqual(["go.example/a"]);
  expect(state.links.get("go.example/a")).toMatchObject({ clicks: 5 });
  expect(spellingsOf(state, "go.example/a")).toEqual([
    "go.example/a",
    "GO.example/a",
    "go.example:443//a",
    "go.example./%61?utm_source=dm",
  ]);
  const many = Array.from({ length: 30 }, (_, at) => clickOf({ short_code: `a?${at}` }));
  expect(spellingsOf(given(clicks, many), "go.example/a").length).toBe(21);
});
