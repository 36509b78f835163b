/** @jsxImportSource preact */
import type { VNode } from "preact";
import { grouped, type PagePath } from "../document.tsx";
import { numbers, Table } from "./table.tsx";
import { labelOf, periodsOf } from "../../../projections/periods.ts";
import type { Quarters } from "../../../projections/quarters.ts";
import { noClicks, type SuspectedCounts } from "../../../projections/suspected.ts";
import { addressWith } from "../hrefs.ts";
import { lastPeriods, readChoice, type View } from "../view.ts";

/** One kind of what is stacked in each bar. */
export interface Series<Kind extends string> {
  readonly kind: Kind;
  readonly name: string;
  /** `.bar-1` and so on of the stylesheet: the same kind has the same color in each chart. */
  readonly color: 1 | 2 | 3 | 4;
}

export interface Bar<Kind extends string> {
  /** Such as `2026-11-20` or `14:00`. */
  readonly label: string;
  readonly counts: Readonly<Record<Kind, number>>;
}

interface BarChartProps<Kind extends string> {
  readonly title: string;
  readonly series: readonly Series<Kind>[];
  readonly bars: readonly Bar<Kind>[];
  /** What to say in place of a chart that shows nothing. */
  readonly empty: string;
}

/** Pixels; the width is in percent of the page's, so that text never scales. */
const HEIGHT = 196;
const BELOW = 22;
/** Percent of the width beside the bars, for the numbers of the axis. */
const LEFT = 7;
/** Above zero. */
const TICKS_MAX = 3;
const LABELS_MAX = 5;

/** Stacked bars with a legend, and the same numbers as a table for screen readers. */
export function BarChart<Kind extends string>({ title, series, bars, empty }: BarChartProps<Kind>): VNode {
  const most = Math.max(0, ...bars.map(({ counts }) => series.reduce((sum, { kind }) => sum + counts[kind], 0)));
  return (
    <figure class="chart">
      <figcaption>
        {title}
        <ul class="legend">
          {series.map(({ kind, name, color }) => (
            <li>
              <span class={`key bar-${color}`} aria-hidden="true" />
              {name} <b>{grouped(bars.reduce((sum, { counts }) => sum + counts[kind], 0))}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      {most === 0 ? <p class="empty">{empty}</p> : <Bars series={series} bars={bars} most={most} title={title} />}
      {most === 0 ? null : <Numbers series={series} bars={bars} title={title} />}
    </figure>
  );
}

type BarsProps<Kind extends string> = Pick<BarChartProps<Kind>, "series" | "bars" | "title">;

function Bars<Kind extends string>({ series, bars, most, title }: BarsProps<Kind> & { readonly most: number }): VNode {
  const step = tickStep(most);
  const top = Math.ceil(most / step) * step;
  const toY = (value: number): number => rounded(HEIGHT - (value / top) * (HEIGHT - 8));
  const width = (100 - LEFT) / bars.length;
  const every = Math.ceil(bars.length / LABELS_MAX);
  return (
    <svg class="plot" height={HEIGHT + BELOW} role="img" aria-label={title}>
      {Array.from({ length: top / step + 1 }, (_, at) => at * step).map((value) => (
        <>
          <line class="grid" x1={`${LEFT}%`} x2="100%" y1={toY(value)} y2={toY(value)} />
          <text x={`${LEFT - 1}%`} y={toY(value) + 4} text-anchor="end">
            {grouped(value)}
          </text>
        </>
      ))}
      {bars.map((bar, at) => {
        let below = 0;
        const left = LEFT + at * width;
        return (
          <g>
            <title>{`${bar.label}: ${series.map(({ kind, name }) => `${grouped(bar.counts[kind])} ${name}`).join(", ")}`}</title>
            <rect class="zone" x={percent(left)} y={0} width={percent(width)} height={HEIGHT} />
            {series.map(({ kind, color }) => {
              const from = below;
              below += bar.counts[kind];
              return bar.counts[kind] === 0 ? null : (
                <rect
                  class={`bar-${color}`}
                  x={percent(left + width * 0.15)}
                  y={toY(below)}
                  width={percent(width * 0.7)}
                  height={rounded(toY(from) - toY(below))}
                />
              );
            })}
          </g>
        );
      })}
      {bars.map(({ label }, at) =>
        (bars.length - 1 - at) % every === 0 ? (
          <text
            x={percent(at === bars.length - 1 ? 100 : LEFT + (at + 0.5) * width)}
            y={HEIGHT + BELOW - 4}
            text-anchor={at === bars.length - 1 ? "end" : "middle"}
          >
            {shorten(label)}
          </text>
        ) : null,
      )}
    </svg>
  );
}

/** The least of 1, 2, 5, 10, 20 … that needs no more ticks than fit. */
function tickStep(most: number): number {
  for (let size = 1; ; size *= 10) {
    for (const step of [size, 2 * size, 5 * size]) if (step * TICKS_MAX >= most) return step;
  }
}

/** `2026-11-20` as `11-20`, and `2026-11-20 14:00` as `14:00`: the whole label is in the title and the table. */
function shorten(label: string): string {
  return label.split(" ")[1] ?? label.replace(/^\d{4}-/, "");
}

function percent(number: number): string {
  return `${rounded(number)}%`;
}

function Numbers<Kind extends string>({ series, bars, title }: BarsProps<Kind>): VNode {
  return (
    <details>
      <summary>The numbers as a table</summary>
      <Table label={`${title}: the numbers`} columns={["when", ...numbers(...series.map(({ name }) => name))]}>
        {bars.toReversed().map((bar) => (
          <tr>
            <th scope="row">{bar.label}</th>
            {series.map(({ kind }) => (
              <td class="number">{grouped(bar.counts[kind])}</td>
            ))}
          </tr>
        ))}
      </Table>
    </details>
  );
}

/** A picture needs no more than hundredths. */
function rounded(number: number): number {
  return Math.round(number * 100) / 100;
}

/** What a reader may choose. More than 90 days would make a page heavy, and of busy weeks less is kept. */
const RANGES = {
  "24h": { unit: "hour", count: 24, words: "24 h" },
  "7d": { unit: "day", count: 7, words: "7 d" },
  "30d": { unit: "day", count: 30, words: "30 d" },
  "90d": { unit: "day", count: 90, words: "90 d" },
} as const;

const RANGE_NAMES = Object.keys(RANGES) as readonly (keyof typeof RANGES)[];

/** Without a choice: long enough for the rhythm of days or of weeks, and fitted to the data. */
const FITTED = { hour: 48, day: 30 } as const;

type Unit = keyof typeof FITTED;

/** The periods of a page's charts, and which of their bars are shown. `unit`: without a choice in the address. */
export function readRange(view: View, unit: Unit) {
  const name = readChoice(view, "range", RANGE_NAMES);
  const chosen = name === undefined ? { unit, count: FITTED[unit] } : RANGES[name];
  const query = lastPeriods(view, chosen.unit, chosen.count);
  return {
    query,
    toBars: <Kind extends string>(bars: readonly Bar<Kind>[]) => (name === undefined ? fitToData(bars) : bars),
  };
}

interface RangePickerProps {
  readonly view: View;
  /** Of the page. */
  readonly path: PagePath;
}

/** Links to the ranges; the first fits the data. */
export function RangePicker({ view, path }: RangePickerProps): VNode {
  const chosen = readChoice(view, "range", RANGE_NAMES);
  return (
    <ul class="tabs" aria-label="Range of the charts">
      {[undefined, ...RANGE_NAMES].map((name) => (
        <li>
          <a href={addressWith(path, view.query, { range: name })} aria-current={name === chosen ? "true" : undefined}>
            {name === undefined ? "Fitted" : RANGES[name].words}
          </a>
        </li>
      ))}
    </ul>
  );
}

const ALL_SERIES = [
  { kind: "people", name: "people", color: 1 },
  { kind: "suspected", name: "suspected", color: 2 },
  { kind: "bots", name: "bots", color: 3 },
] as const;

/** Which of one link's clicks are suspected depends on messages, which its own clicks do not show. */
const LINK_SERIES = [
  { kind: "people", name: "people and suspected", color: 1 },
  { kind: "bots", name: "bots", color: 3 },
] as const;

/** The last periods from the first of them in which something is counted, a few at least; the others say nothing. */
export function fitToData<Kind extends string>(bars: readonly Bar<Kind>[]): readonly Bar<Kind>[] {
  const first = bars.findIndex(({ counts }) => Object.values<number>(counts).some((count) => count > 0));
  return first === -1 ? bars : bars.slice(Math.max(0, Math.min(first, bars.length - BARS_MIN)));
}

const BARS_MIN = 12;

interface ClicksChartProps {
  readonly view: View;
  readonly unit: Unit;
  readonly quarters: Quarters<SuspectedCounts>;
  readonly isOfLink?: boolean;
}

/** Clicks over the newest days or hours, by who made them. */
export function ClicksChart({ view, unit, quarters, isOfLink = false }: ClicksChartProps): VNode {
  const { query, toBars } = readRange(view, unit);
  const periods = periodsOf(quarters, query, noClicks).map(({ start, counts: { clicks, suspected, bots } }) => ({
    label: labelOf(start, query),
    counts: { people: clicks - suspected, suspected, bots },
  }));
  const bars = toBars(periods);
  return (
    <BarChart
      title={`Clicks per ${query.unit}, last ${bars.length} ${query.unit}s`}
      series={isOfLink ? LINK_SERIES : ALL_SERIES}
      bars={bars}
      empty={`No link was clicked in these ${query.unit}s.`}
    />
  );
}
