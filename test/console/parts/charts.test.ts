// On the memory harness.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import { BarChart, fitToData } from "../../../src/console/parts/charts.tsx";
import { rowsOf, textsAt } from "../pages.ts";

const SERIES = [
  { kind: "people", name: "people", color: 1 },
  { kind: "bots", name: "bots", color: 3 },
] as const;

interface Counts {
  readonly people: number;
  readonly bots: number;
}

const barsOf = (counts: readonly Counts[]) => counts.map((one, at) => ({ label: `d${at}`, counts: one }));

function chartOf(counts: readonly Counts[]): string {
  const bars = barsOf(counts);
  return renderToString(h(BarChart<"people" | "bots">, { title: "Clicks", series: SERIES, bars, empty: "None." }));
}

const toNumber = (text = ""): number => Number(text.replaceAll(",", ""));

/** The numbers of the axis beside the bars. */
async function ticksOf(chart: string): Promise<readonly number[]> {
  return (await textsAt(chart, 'text[text-anchor="end"]')).flatMap(({ text }) =>
    text.startsWith("d") ? [] : [toNumber(text)],
  );
}

const counts = fc.record({ people: fc.nat({ max: 1_000_000 }), bots: fc.nat({ max: 1_000 }) });
const someCounts = fc
  .array(counts, { minLength: 1, maxLength: 48 })
  .filter((all) => all.some(({ people, bots }) => people + bots > 0));

test("the axis has at most four ticks, round, even, from zero to the highest bar", () =>
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

test("the height of each part of a bar is in proportion to its number, and the parts stand on each other", () =>
  fc.assert(
    fc.asyncProperty(someCounts, async (all) => {
      const chart = chartOf(all);
      const rects = [...chart.matchAll(/<rect class="bar-\d" [^>]*? y="([\d.]+)" [^>]*?height="([\d.]+)"/g)];
      const top = (await ticksOf(chart)).at(-1) ?? 0;
      const drawn = all.flatMap(({ people, bots }) => [people, bots]).filter((count) => count > 0);
      expect(rects).toHaveLength(drawn.length);
      const full = Number(/<line [^>]*y1="([\d.]+)"/.exec(chart)?.[1]) - 8;
      for (const [at, [, , height]] of rects.entries()) {
        expect(Math.abs(Number(height) - ((drawn[at] ?? 0) / top) * full)).toBeLessThan(0.05);
      }
      const both = all.findIndex(({ people, bots }) => people > 0 && bots > 0);
      if (both === -1) return;
      const first = all
        .slice(0, both)
        .flatMap(({ people, bots }) => [people, bots])
        .filter((count) => count > 0).length;
      const [lower, upper] = rects.slice(first, first + 2);
      expect(Math.abs(Number(upper?.[1]) + Number(upper?.[2]) - Number(lower?.[1]))).toBeLessThan(0.05);
    }),
    { numRuns: 50 },
  ));

test("the table has the numbers of the bars, the newest first, and the legend their sums", () =>
  fc.assert(
    fc.asyncProperty(someCounts, async (all) => {
      const chart = chartOf(all);
      const rows = (await rowsOf(chart)).map((row) => row.split(" | "));
      expect(rows.map(([when, people, bots]) => [when, toNumber(people), toNumber(bots)])).toEqual(
        all.map(({ people, bots }, at) => [`d${at}`, people, bots]).toReversed(),
      );
      const sums = (await textsAt(chart, ".legend b")).map(({ text }) => toNumber(text));
      const sum = (kind: keyof Counts): number => all.reduce((total, one) => total + one[kind], 0);
      expect(sums).toEqual([sum("people"), sum("bots")]);
    }),
    { numRuns: 50 },
  ));

test("a chart of nothing says so, and has no axis", async () => {
  const chart = chartOf([{ people: 0, bots: 0 }]);
  expect(await textsAt(chart, ".empty")).toMatchObject([{ text: "None." }]);
  expect(chart).not.toContain("<svg");
});

test("begins with the first period in which something is counted, but for a few at least", () => {
  const none = { people: 0, bots: 0 };
  const some = { people: 1, bots: 0 };
  const fitted = (all: readonly Counts[]) => fitToData(barsOf(all)).map(({ label }) => label);
  const periods = (first: number, count: number) => Array.from({ length: count }, (_, at) => `d${first + at}`);
  const at = (index: number, length: number) => Array.from({ length }, (_, one) => (one === index ? some : none));
  expect(fitted(at(5, 30))).toEqual(periods(5, 25));
  expect(fitted(at(29, 30))).toEqual(periods(18, 12));
  expect(fitted(at(0, 3))).toEqual(periods(0, 3));
  expect(fitted([none, none])).toEqual(periods(0, 2));
});
