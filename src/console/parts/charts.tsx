/** @jsxImportSource preact */
import type { VNode } from "preact";
import { grouped } from "../../platform/counts-and-lists.ts";
import { QUARTER_MS } from "../../../projections/quarters.ts";
import type { ResultRate } from "../../history/results.ts";
import { formatPercent } from "../../history/results-format.ts";
import { numbers, Table } from "./table.tsx";

/** One of the kinds that are stacked in each bar. */
export interface Series<Kind extends string> {
  readonly kind: Kind;
  readonly name: string;
  /** The number of the class `.bar-1` and so on in the stylesheet: the same kind has the same color in each chart. */
  readonly color: 1 | 2 | 3 | 4;
}

export interface Bar<Kind extends string> {
  /** Such as `2026-11-20` or `14:00`. */
  readonly label: string;
  readonly counts: Readonly<Record<Kind, number>>;
  /**
   * The sum of all kinds in the period that is earlier by as many periods as there are bars. Undefined if not compared.
   */
  readonly before?: number;
}

interface BarChartProps<Kind extends string> {
  readonly title: string;
  readonly series: readonly Series<Kind>[];
  readonly bars: readonly Bar<Kind>[];
  /** The text in place of a chart that shows nothing. */
  readonly empty: string;
}

/** In pixels. Widths are in percent of the page's, so that text never scales. */
const HEIGHT = 196;
const BELOW = 22;
/** Percent of the width that the numbers of the axis take, to the left of the bars. */
const LEFT = 7;
/** Most ticks of the axis above zero. */
const TICKS_MAX = 3;
const LABELS_MAX = 5;

/**
 * Stacked bars with a legend, and the same numbers as a table for screen readers. A dashed outline behind each is the
 * period before, if anything was counted then. Arrow keys move from bar to bar.
 */
export function BarChart<Kind extends string>(props: BarChartProps<Kind>): VNode {
  const { title, series, bars, empty } = props;
  const totals = bars.map(({ counts }) => series.reduce((sum, { kind }) => sum + counts[kind], 0));
  const before = bars.reduce((sum, bar) => sum + (bar.before ?? 0), 0);
  const most = totals.every((total) => total === 0) ? 0 : Math.max(...totals, ...bars.map((bar) => bar.before ?? 0));
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
          {before === 0 ? null : (
            <li>
              <span class="key before" aria-hidden="true" />
              {BEFORE} <b>{grouped(before)}</b>
            </li>
          )}
        </ul>
      </figcaption>
      {most === 0 ? (
        <p class="empty">{empty}</p>
      ) : (
        <>
          <Bars {...props} most={most} />
          <output class="quiet" />
          <Numbers {...props} isCompared={before > 0} />
        </>
      )}
    </figure>
  );
}

/** The name of the outlines. */
const BEFORE = "in the previous period";

type BarsProps<Kind extends string> = Pick<BarChartProps<Kind>, "series" | "bars" | "title">;

function Bars<Kind extends string>({ series, bars, most, title }: BarsProps<Kind> & { readonly most: number }): VNode {
  const step = tickStep(most);
  const top = Math.ceil(most / step) * step;
  const toY = (value: number): number => rounded(HEIGHT - (value / top) * (HEIGHT - 8));
  const width = (100 - LEFT) / bars.length;
  /** The path of one kind's part of a bar, above the kinds before it. A bar is one unit wide. */
  const drawBar = (at: number, nth: number, kind: Kind, counts: Bar<Kind>["counts"]): string => {
    const below = series.slice(0, nth).reduce((sum, one) => sum + counts[one.kind], 0);
    return counts[kind] === 0 ? "" : `M${rounded(at + 0.15)} ${toY(below)}h.7V${toY(below + counts[kind])}h-.7z`;
  };
  const every = Math.ceil(bars.length / LABELS_MAX);
  return (
    <svg
      class="plot"
      height={HEIGHT + BELOW}
      role="img"
      aria-label={title}
      tabIndex={0}
      aria-keyshortcuts="ArrowLeft ArrowRight"
    >
      {Array.from({ length: top / step + 1 }, (_, at) => at * step).map((value) => (
        <>
          <line class="grid" x1={`${LEFT}%`} x2="100%" y1={toY(value)} y2={toY(value)} />
          <text x={`${LEFT - 1}%`} y={toY(value) + 4} text-anchor="end">
            {grouped(value)}
          </text>
        </>
      ))}
      {bars.map((bar, at) => (
        <g>
          <title>{sayBar(series, bar)}</title>
          <rect class="zone" x={percent(LEFT + at * width)} width={percent(width)} height={HEIGHT} />
          {bar.before ? (
            <rect
              class="before"
              x={percent(LEFT + (at + 0.05) * width)}
              y={toY(bar.before)}
              width={percent(width * 0.9)}
              height={rounded(HEIGHT - toY(bar.before))}
            />
          ) : null}
        </g>
      ))}
      <svg
        x={`${LEFT}%`}
        width={`${100 - LEFT}%`}
        height={HEIGHT}
        viewBox={`0 0 ${bars.length} ${HEIGHT}`}
        preserveAspectRatio="none"
        pointer-events="none"
      >
        {series.map(({ kind, color }, nth) => (
          <path class={`bar-${color}`} d={bars.map(({ counts }, at) => drawBar(at, nth, kind, counts)).join("")} />
        ))}
      </svg>
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

function sayBar<Kind extends string>(series: readonly Series<Kind>[], { label, counts, before }: Bar<Kind>): string {
  const now = series.map(({ kind, name }) => `${grouped(counts[kind])} ${name}`).join(", ");
  return `${label}: ${now}${before ? `; ${grouped(before)} ${BEFORE}` : ""}`;
}

/** The smallest step of 1, 2, 5, 10, 20 … with which no more ticks are needed than fit. */
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

function Numbers<Kind extends string>(props: BarsProps<Kind> & { readonly isCompared: boolean }): VNode {
  const { series, bars, title, isCompared } = props;
  const names = [...series.map(({ name }) => name), ...(isCompared ? [BEFORE] : [])];
  return (
    <details>
      <summary>The numbers as a table</summary>
      <Table
        label={`${title}: the numbers`}
        columns={["when", ...numbers(...names)]}
        rows={bars
          .toReversed()
          .map(({ label, counts, before = 0 }) => [
            label,
            ...series.map(({ kind }) => counts[kind]),
            ...(isCompared ? [before] : []),
          ])}
      />
    </details>
  );
}

/** Rounds to hundredths, which are enough for a picture. */
function rounded(number: number): number {
  return Math.round(number * 100) / 100;
}

interface RateBarProps {
  readonly rate: ResultRate | null;
  /** The rate at the right end of the bar, 0 to 1. */
  readonly top: number;
  readonly isBefore?: boolean;
}

/** A rate with its interval, as wide as its cell is. */
export function RateBar({ rate, top, isBefore = false }: RateBarProps): VNode {
  if (rate === null) return <span class="quiet">none</span>;
  const { low, high } = rate;
  const toX = (value: number): string => percent((value / top) * 100);
  return (
    <div class={isBefore ? "rate quiet" : "rate"}>
      <svg height={16} aria-hidden="true">
        <rect class="track" y={7} width="100%" height={2} />
        <rect class={isBefore ? "bar-3" : "interval"} x={toX(low)} y={4} width={toX(high - low)} height={8} />
        <rect class="point" x={toX(rate.rate)} width={3} height={16} />
      </svg>
      <span>
        {formatPercent(rate.rate)}{" "}
        <span class="quiet">
          ({formatPercent(low)} to {formatPercent(high)})
        </span>
      </span>
    </div>
  );
}

/** Bars of a histogram: as many as a phone can tell apart. */
const HISTOGRAM_BARS = 100;
const HISTOGRAM_HEIGHT = 16;

/** The events of the quarter of an hour that begins at `start`, in ms since 1970. `failed` is a part of `count`. */
export interface QuarterCount {
  readonly start: number;
  readonly count: number;
  readonly failed: number;
}

interface HistogramProps {
  /** In ms since 1970. */
  readonly from: number;
  readonly to: number;
  readonly quarters: Iterable<QuarterCount>;
}

/**
 * The number of events over the time between two moments, and in red how many of them failed. Renders nothing if the
 * moments are only minutes apart.
 */
export function Histogram({ from, to, quarters }: HistogramProps): VNode | null {
  const bars = Math.min(HISTOGRAM_BARS, Math.floor((to - from) / QUARTER_MS));
  if (bars < 2) return null;
  const counts = Array.from({ length: bars }, () => ({ count: 0, failed: 0 }));
  for (const { start, count, failed } of quarters) {
    const bar = counts[Math.max(0, Math.min(bars - 1, Math.floor(((start - from) / (to - from)) * bars)))]!;
    bar.count += count;
    bar.failed += failed;
  }
  const most = Math.max(1, ...counts.map(({ count }) => count));
  // Even the smallest count must be visible.
  const toHeight = (count: number): number => rounded(Math.max(1.5, (count / most) * HISTOGRAM_HEIGHT));
  const toBar = (at: number, count: number, color?: string): VNode | null =>
    count === 0 ? null : (
      <rect class={color} x={at + 0.2} y={HISTOGRAM_HEIGHT - toHeight(count)} width={0.6} height={toHeight(count)} />
    );
  return (
    <svg
      class="histogram"
      viewBox={`0 0 ${bars} ${HISTOGRAM_HEIGHT}`}
      height={HISTOGRAM_HEIGHT}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {counts.map(({ count, failed }, at) => [toBar(at, count), toBar(at, failed, "bar-4")])}
    </svg>
  );
}
