// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import { clicks } from "../../projections/clicks.ts";
import { fold } from "../../projections/projection.ts";
import { COUNTED_LINKS_MAX } from "../../projections/drop-oldest-links.ts";
import { suspected } from "../../projections/clicks-suspected-as-networks-own.ts";
import {
  addVisits,
  countVisitors,
  LINK_DAYS_MAX,
  noVisits,
  visits,
  type Visits,
} from "../../projections/link-clicks-by-day.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { histories } from "./generate-history.ts";
import { countCases } from "../harness/case-count.ts";

const RUN = { run_id: "r", recipient: { id: "101", username: "ann" } };
const LINK = "go.example/x";

function attempted(attempt_id: string, ...links: string[]): NewEvent {
  const data = { attempt_id, ...RUN, text: "Hi", variant: "A", links, day: "2026-11-20" };
  return { type: "DirectMessageAttempted", data };
}

function sent(attempt_id: string): NewEvent {
  return { type: "DirectMessageSent", data: { attempt_id, ...RUN, message_id: "m", settled_by: "answer" } };
}

const added = (code: string, more: { template?: string } = {}): NewEvent => {
  return { type: "LinkAdded", data: { domain: "go.example", code, target: "https://shop.example/", ...more } };
};

const NOON = "2026-11-20T12:00:00.000Z";

type Told = readonly [time: string | number, newEvent: NewEvent];

/** Folds events, each at an ISO time or a number of seconds after noon. */
function foldTold(told: Iterable<Told>): Visits {
  let state = visits.initial();
  let position = 0;
  for (const [time, { type, data }] of told) {
    const iso = typeof time === "string" ? time : new Date(Date.parse(NOON) + time * 1_000).toISOString();
    const event = { type, data, id: "", position: ++position, stream: "", version: 1, time: iso, hash: "", meta: {} };
    state = visits.evolve(state, event as unknown as Recorded);
  }
  return state;
}

const on = (state: Visits, day = "2026-11-20", link = LINK) => ({
  ...state.days.get(day)?.get(link),
  visitors: countVisitors(state, day, link),
});

test("clicks in any spelling count for the link in a message", () => {
  const state = foldTold([
    [0, attempted("1", "go.example:443/x", "go.example/x")],
    [1, sent("1")],
    [100, clickOf({ domain: "GO.example." })],
    [200, clickOf({ domain: "go.example:443", short_code: "/x/" })],
    [300, clickOf({ short_code: "%78?utm_source=dm" })],
  ]);
  expect([[...state.links.keys()], on(state)]).toEqual([[LINK], expect.objectContaining({ clicks: 3 })]);
});

test("clicks by people, bots and probes on known links are counted separately", () => {
  const state = foldTold([
    [0, attempted("1", LINK)],
    [1, sent("1")],
    [2, added("y")],
    [100, clickOf({ domain: "GO.example", visitor: 65 })],
    [200, clickOf({ anonymous: true })],
    [300, clickOf({ bot: true, visitor: 130 })],
    [400, clickOf({ bot: true, probe: "head" })],
    [500, clickOf({ bot: true, probe: "prefetch" })],
    [600, clickOf({ short_code: "y", visitor: 65 })],
    [700, clickOf({ short_code: "z", visitor: 65 })],
  ]);
  expect(on(state)).toEqual({ clicks: 2, suspected: 0, anonymous: 1, bots: 1, probes: 2, visitors: 1 });
  expect(on(state, "2026-11-20", "go.example/y")).toMatchObject({ clicks: 1, visitors: 1 });
  expect(state.days.get("2026-11-20")?.size).toBe(2);
});

test("a visitor counts once per link and UTC day, and past days keep their estimate", () => {
  const first = [
    [0, attempted("1", LINK)],
    [100, clickOf({ visitor: 65 })],
    [200, clickOf({ visitor: 65 })],
    [300, clickOf({ visitor: 129 })],
  ] as const;
  expect(on(foldTold(first))).toMatchObject({ clicks: 3, visitors: 2 });
  const second = foldTold([...first, ["2026-11-21T00:00:00.000Z", clickOf({ visitor: 65 })]]);
  expect(on(second)).toMatchObject({ clicks: 3, visitors: 2 });
  expect(on(second, "2026-11-21")).toMatchObject({ clicks: 1, visitors: 1 });
  expect([...second.sketches.keys()]).toEqual([LINK]);
  // The clock was set back to the day before. The salt of that day is already deleted.
  const back = foldTold([
    ...first,
    ["2026-11-21T00:00:00.000Z", clickOf()],
    ["2026-11-20T23:59:59.000Z", clickOf({ visitor: 999 })],
  ]);
  expect(on(back)).toMatchObject({ clicks: 4, visitors: 2 });
});

test("a visitor stops counting once the click is suspected", () => {
  const begun = [
    [0, attempted("1", LINK)],
    [1, sent("1")],
    [2, clickOf({ visitor: 65 })],
  ] as const;
  expect(on(foldTold(begun))).toMatchObject({ clicks: 1, suspected: 0, visitors: 1 });
  const burst = foldTold([...begun, [3, clickOf({ visitor: 129 })]]);
  expect(on(burst)).toMatchObject({ clicks: 2, suspected: 2, visitors: 0 });
  const alone = foldTold([...begun, [8, clickOf({ visitor: 129 })]]);
  expect(on(alone)).toMatchObject({ clicks: 2, suspected: 0, visitors: 2 });
  const overnight = foldTold([
    ["2026-11-20T23:59:58.000Z", attempted("1", LINK)],
    ["2026-11-20T23:59:59.000Z", clickOf({ visitor: 65 })],
    ["2026-11-21T00:00:00.000Z", clickOf({ visitor: 129 })],
  ]);
  expect(on(overnight)).toMatchObject({ clicks: 1, suspected: 1 });
  expect(on(overnight, "2026-11-21")).toMatchObject({ clicks: 1, suspected: 1, visitors: 0 });
});

test("beyond the limit a message's link replaces the oldest, and an added one is ignored", () => {
  const links = Array.from({ length: COUNTED_LINKS_MAX }, (_, number): Told => [0, added(`a${number}`)]);
  const full = foldTold([...links, [0, added("late")], [1, clickOf({ short_code: "late" })]]);
  expect(full.links.size).toBe(COUNTED_LINKS_MAX);
  expect(full.days.size).toBe(0);
  const more = foldTold([...links, [0, attempted("1", LINK)], [100, clickOf()], [200, clickOf({ short_code: "a0" })]]);
  expect(more.links.has(LINK)).toBe(true);
  expect(more.links.has("go.example/a0")).toBe(false);
  expect([...(more.days.get("2026-11-20")?.keys() ?? [])]).toEqual([LINK]);
});

test("beyond the limit the oldest day is merged into its links' earlier clicks", () => {
  const perDay = COUNTED_LINKS_MAX;
  const days = LINK_DAYS_MAX / perDay + 1;
  const links = Array.from({ length: perDay }, (_, number): Told => [0, added(`a${number}`)]);
  const clicked = Array.from({ length: days * perDay }, (_, number): Told => {
    const time = new Date(Date.parse(NOON) + Math.floor(number / perDay) * 86_400_000).toISOString();
    return [time, clickOf({ short_code: `a${number % perDay}`, visitor: 65 })];
  });
  const state = foldTold([...links, ...clicked]);
  expect(state.entries).toBe(LINK_DAYS_MAX);
  expect(state.days.size).toBe(days - 1);
  expect(state.days.has("2026-11-20")).toBe(false);
  expect(state.merged_to).toBe("2026-11-20");
  expect(state.links.get("go.example/a7")?.earlier).toEqual({ ...noVisits(), clicks: 1, visitors: 1 });
});

test("in any history, counts equal those of the clicks and suspected projections", () => {
  fc.assert(
    fc.property(histories(), ({ events }) => {
      const own: Recorded[] = [];
      const met = new Set<string>();
      for (const event of events) {
        if (event.type === "LinkAdded") met.add(`go.example/${event.data.code}`);
        if (event.type === "DirectMessageAttempted")
          for (const link of fold(visits, visits.initial(), [event]).links.keys()) met.add(link);
        if (event.type === "LinkClicked" && !met.has(`go.example/${event.data.short_code}`)) continue;
        own.push(event);
      }
      const counted = fold(visits, visits.initial(), own);
      const known = fold(clicks, clicks.initial(), own);
      const judged = fold(suspected, suspected.initial(), own);
      for (const link of met) {
        const sum = [...counted.days.values()].reduce(
          (total, links) => addVisits(total, links.get(link) ?? noVisits()),
          noVisits(),
        );
        expect(sum.clicks).toBe(known.links.get(link)?.clicks ?? 0);
        expect(sum.bots + sum.probes).toBe(known.links.get(link)?.bots ?? 0);
        expect(sum.suspected).toBe(judged.links.get(link)?.suspected ?? 0);
      }
    }),
    { numRuns: countCases(300) },
  );
});
