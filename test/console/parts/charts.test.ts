// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { fitToData } from "../../../src/history/chart-figures.ts";
import { BarChart, Histogram } from "../../../src/console/parts/charts.tsx";
import { countBars, type QuarterCount } from "../../../src/history/chart-figures.ts";
import { ClicksChart, RangePicker } from "../../../src/console/parts/clicks-chart-and-range-picker.tsx";
import { ShownView, type View } from "../../../src/console/page-context.ts";
import { QUARTER_MS, QUARTERS_MAX } from "../../../projections/count-by-quarter-hour.ts";
import { rowsOf, textsAt } from "../open-console.ts";

const SERIES = [
  { kind: "people", name: "people", color: 1 },
  { kind: "bots", name: "bots", color: 3 },
] as const;

interface Counts {
  readonly people: number;
  readonly bots: number;
}

const dayAt = (days: number) => Temporal.PlainDate.from("2026-01-01").add({ days }).toString();
const shownDay = (days: number) =>
  new Date(dayAt(days)).toLocaleDateString("en-GB", {
    day: "numeric",
    month: "short",
    year: "numeric",
    timeZone: "UTC",
  });
const barsOf = (counts: readonly Counts[]) => counts.map((one, at) => ({ label: dayAt(at), counts: one }));

function chartOf(counts: readonly Counts[]): string {
  const bars = barsOf(counts);
  return renderToString(h(BarChart<"people" | "bots">, { title: "Clicks", series: SERIES, bars, empty: "None." }));
}

const toNumber = (text = ""): number => Number(text.replaceAll(",", ""));

/** Returns the numbers on the chart's vertical axis. */
async function ticksOf(chart: string): Promise<readonly number[]> {
  return (await textsAt(chart, 'text[text-anchor="end"]')).flatMap(({ text }) =>
    /[A-Z]/.test(text) ? [] : [toNumber(text)],
  );
}

const counts = fc.record({ people: fc.nat({ max: 1_000_000 }), bots: fc.nat({ max: 1_000 }) });
const someCounts = fc
  .array(counts, { minLength: 1, maxLength: 48 })
  .filter((all) => all.some(({ people, bots }) => people + bots > 0));

test("the axis has at most four even, round ticks from zero past the highest bar", () =>
  fc.assert(
    fc.asyncProperty(someCounts, async (all) => {
      const ticks = await ticksOf(chartOf(all));
      const [zero = -1, step = 0] = ticks;
      expect(zero).toBe(0);
      expect(ticks.length).toBeLessThanOrEqual(4);
      expect(String(step)).toMatch(/^[125]0*$/);
      expect(ticks).toEqual(ticks.map((_, at) => at * step));
      const most = Math.max(...all.map(({ people, bots }) => people + bots));
      expect(ticks.at(-1)).toBeGreaterThanOrEqual(most);
      expect((ticks.at(-1) ?? 0) - step).toBeLessThan(most);
    }),
    { numRuns: 50 },
  ));

/**
 * Returns the parts of the bars that have this color: number of the bar -> the heights where its part begins and ends.
 */
function drawnParts(chart: string, color: number): ReadonlyMap<number, { readonly from: number; readonly to: number }> {
  const path = new RegExp(`<path class="bar-${color}" d="([^"]*)"`).exec(chart)?.[1] ?? "";
  const parts = path.matchAll(/M(\d+)\.15 ([\d.]+)h\.7V([\d.]+)h-\.7z/g);
  return new Map([...parts].map(([, at, from, to]) => [Number(at), { from: Number(from), to: Number(to) }]));
}

test("the parts of a bar are stacked, each with a proportional height", () =>
  fc.assert(
    fc.asyncProperty(someCounts, async (all) => {
      const chart = chartOf(all);
      const top = (await ticksOf(chart)).at(-1) ?? 0;
      const full = Number(/<line [^>]*y1="([\d.]+)"/.exec(chart)?.[1]) - 8;
      const [people, bots] = [drawnParts(chart, 1), drawnParts(chart, 3)];
      expect([...people.keys()]).toEqual(all.flatMap((bar, at) => (bar.people > 0 ? [at] : [])));
      expect([...bots.keys()]).toEqual(all.flatMap((bar, at) => (bar.bots > 0 ? [at] : [])));
      for (const [at, bar] of all.entries()) {
        for (const [part, count] of [[people.get(at), bar.people] as const, [bots.get(at), bar.bots] as const]) {
          if (part !== undefined) expect(Math.abs(part.from - part.to - (count / top) * full)).toBeLessThan(0.05);
        }
        const [lower, upper] = [people.get(at), bots.get(at)];
        if (lower !== undefined && upper !== undefined) expect(upper.from).toBe(lower.to);
      }
    }),
    { numRuns: 50 },
  ));

test("the table has the numbers of the bars, newest first, and the legend their sums", () =>
  fc.assert(
    fc.asyncProperty(someCounts, async (all) => {
      const chart = chartOf(all);
      const rows = (await rowsOf(chart)).map((row) => row.split(" | "));
      expect(rows.map(([when, people, bots]) => [when, toNumber(people), toNumber(bots)])).toEqual(
        all.map(({ people, bots }, at) => [shownDay(at), people, bots]).toReversed(),
      );
      const sums = (await textsAt(chart, ".legend b")).map(({ text }) => toNumber(text));
      const sum = (kind: keyof Counts): number => all.reduce((total, one) => total + one[kind], 0);
      expect(sums).toEqual([sum("people"), sum("bots")]);
    }),
    { numRuns: 50 },
  ));

test("bots that outnumber people many times are cut, so that the people can be seen", async () => {
  const bars = barsOf([
    { people: 4, bots: 1_200 },
    { people: 20, bots: 3 },
  ]);
  const series = SERIES.map((one) => ({ ...one, mayBeCut: one.kind === "bots" }));
  const props = { title: "Clicks", bars, empty: "None." };
  const chart = renderToString(h(BarChart<"people" | "bots">, { ...props, series }));
  expect(await ticksOf(chart)).toEqual([0, 20, 40]);
  expect(chart).toContain("The highest bar is cut: it counts 1,204.");
  const whole = renderToString(h(BarChart<"people" | "bots">, { ...props, series: SERIES }));
  expect([(await ticksOf(whole)).at(-1), whole.includes("is cut")]).toEqual([1_500, false]);
});

test("a chart without data says so, and has no axis", async () => {
  const chart = chartOf([{ people: 0, bots: 0 }]);
  expect(await textsAt(chart, ".empty")).toMatchObject([{ text: "None." }]);
  expect(chart).not.toContain("<svg");
});

test("a fitted chart begins with the first counted period, and has at least 12 if available", () => {
  const none = { people: 0, bots: 0 };
  const some = { people: 1, bots: 0 };
  const fitted = (all: readonly Counts[]) => fitToData(barsOf(all)).map(({ label }) => label);
  const periods = (first: number, count: number) => Array.from({ length: count }, (_, at) => dayAt(first + at));
  const at = (index: number, length: number) => Array.from({ length }, (_, one) => (one === index ? some : none));
  expect(fitted(at(5, 30))).toEqual(periods(5, 25));
  expect(fitted(at(29, 30))).toEqual(periods(18, 12));
  expect(fitted(at(0, 3))).toEqual(periods(0, 3));
  expect(fitted([none, none])).toEqual(periods(0, 2));
});

const NOON = Date.UTC(2026, 2, 20, 12);
const DAY_MS = 86_400_000;

/**
 * Renders the chart of clicks and the picker of its range at noon on 20 March, with one click on each of these days.
 */
function shownAt(query: string, clickedDaysAgo: readonly number[] = []) {
  const settings = { timezone: "UTC" };
  const view = { query: new URLSearchParams(query), now: NOON, settings } as View;
  const quarters = new Map(
    clickedDaysAgo.map((ago) => [quarterOf(NOON - ago * DAY_MS), { clicks: 1, suspected: 0, bots: 7 }]),
  );
  return {
    chart: renderToString(h(ClicksChart, { view, unit: "day", quarters })),
    picker: renderToString(h(ShownView.Provider, { value: view }, h(RangePicker, { view, path: "/links" }))),
  };
}

const quarterOf = (ms: number): number => ms - (ms % QUARTER_MS);

const titleOf = (chart: string) => /<figcaption>([^<]*)/.exec(chart)?.[1];

test.each([
  ["from=2026-03-01&to=2026-03-10", "Clicks per day, 2026-03-01 to 2026-03-10", 10],
  ["from=2026-03-18", "Clicks per day, 2026-03-18 to 2026-03-20", 3],
  ["to=2026-03-10", "Clicks per day, 2026-02-09 to 2026-03-10", 30],
  ["from=2026-03-10&to=2026-03-10", "Clicks per hour, 2026-03-10 00:00 to 2026-03-10 23:00", 24],
  ["from=2026-03-19&range=7d", "Clicks per hour, 2026-03-19 00:00 to 2026-03-20 12:00", 37],
  ["from=2020-01-01&to=2099-01-01", "Clicks per day, 2025-12-21 to 2026-03-20", 90],
  ["from=2026-03-10&to=2026-03-01", "Clicks per day, last 30 days", 30],
  ["from=2026-02-31&to=tomorrow", "Clicks per day, last 30 days", 30],
  ["range=7d", "Clicks per day, last 7 days", 7],
] as const)("the range %s gives the chart %s", async (query, title, count) => {
  const { chart } = shownAt(query, [0, 1, 2, 10, 29]);
  expect(titleOf(chart)).toBe(title);
  expect(await rowsOf(chart)).toHaveLength(count);
});

test("the picker keeps the other parameters of the page, and marks the current range", async () => {
  const { picker } = shownAt("sort=clicks&from=2026-03-01&to=2026-03-10&range=7d&as_of=5");
  const links = (await textsAt(picker, ".tabs li")).map(({ links: [link = ""] }) => link.replaceAll("&amp;", "&"));
  expect(links.slice(0, 2)).toEqual(["/links?sort=clicks", "/links?sort=clicks&range=24h"]);
  expect(picker).not.toContain("aria-current");
  const fields = [...picker.matchAll(/<input type="(\w+)" name="(\w+)" (?:min="2000-01-01" )?value="([^"]*)"/g)].map(
    ([, ...field]) => field,
  );
  expect(fields).toEqual([
    ["hidden", "sort", "clicks"],
    ["date", "from", "2026-03-01"],
    ["date", "to", "2026-03-10"],
  ]);
  expect(await textsAt(shownAt("range=7d").picker, "[aria-current]")).toMatchObject([{ text: "7 d" }]);
  expect(await textsAt(shownAt("").picker, "[aria-current]")).toMatchObject([{ text: "Fitted" }]);
});

test("people of the previous period are in the bars, the legend, the table and the titles, without its bots", async () => {
  const { chart } = shownAt("range=7d", [1, 8, 9, 13, 14]);
  expect((await textsAt(chart, ".legend li")).map(({ text }) => text)).toEqual([
    "people 1",
    "people in the previous period 3",
    "suspected 0",
    "bots 7",
  ]);
  const [, outlines = ""] = /<path class="before" d="([^"]*)"/.exec(chart) ?? [];
  expect(outlines.split("M")).toHaveLength(1 + 3);
  const rows = (await rowsOf(chart)).toReversed();
  expect(rows.map((row) => row.split(" | ").at(-1))).toEqual(["1", "0", "0", "0", "1", "1", "0"]);
  expect((await textsAt(chart, "thead th")).at(-1)?.text).toBe("people in the previous period");
  const title = "<title>19 Mar 2026: 1 people, 0 suspected, 7 bots; 1 people in the previous period</title>";
  expect(chart).toContain(title);
  const many = Array.from({ length: QUARTERS_MAX }, (_, at) => 1 + at / 200);
  expect(shownAt("range=7d", many.toReversed()).chart).toContain("in the previous period");
  expect(shownAt("range=30d", many.toReversed()).chart).not.toContain("in the previous period");
  expect(shownAt("range=7d", [1]).chart).not.toContain("in the previous period");
});

/** Renders a histogram of this many quarter-hours. Returns the place, height and color of each bar. */
async function barsIn(length: number, quarters: readonly QuarterCount[]): Promise<readonly string[]> {
  const from = QUARTER_MS * 10;
  const page = renderToString(h(Histogram, { bars: countBars({ from, to: from + length * QUARTER_MS }, quarters) }));
  const bars = page.matchAll(/<rect (?:class="([^"]*)" )?x="([\d.]+)" y="[\d.]+" width="0.6" height="([\d.]+)"/g);
  return [...bars].map(([, color = "", x, height]) => [x, height, color].join(" ").trimEnd());
}

const countAt = (quarter: number, count: number, failed = 0): QuarterCount => ({
  start: QUARTER_MS * quarter,
  count,
  failed,
});

test("a histogram has a bar for each quarter of an hour, by the square root of its count, with failures in another color", async () => {
  expect(await barsIn(10, [countAt(10, 4), countAt(12, 8, 2), countAt(12, 8), countAt(19, 1)])).toEqual([
    "0.2 8",
    "2.2 16",
    "2.2 5.66 bar-4",
    "9.2 4",
  ]);
  // In a long period a bar stands for many quarters of an hour. The first bar may stand for some from before the log.
  expect(await barsIn(1_000, [countAt(9, 1), countAt(10, 1), countAt(19, 2)])).toEqual(["0.2 16"]);
  expect(await barsIn(1, [countAt(10, 1)])).toEqual([]);
});
