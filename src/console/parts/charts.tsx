/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import type { HistogramBars } from "../../history/chart-figures.ts";
import { formatPercent, grouped } from "../../platform/format-numbers-and-lists.ts";
import { NumberTable } from "./table.tsx";
import { formatTime, useTimes } from "./time.tsx";

/** A kind that a chart counts, such as clicks by bots. The kinds are stacked in each bar. */
export interface Series<Kind extends string> {
  readonly kind: Kind;
  readonly name: string;
  /**
   * Number in the class name `.bar-1` and so on of the stylesheet, so that a kind has the same colour in each chart.
   */
  readonly color: 1 | 2 | 3 | 4;
  /**
   * True if the chart may cut the tops off its bars when counts of this kind make the bars so high that the other kinds
   * would be too small to see.
   */
  readonly mayBeCut?: boolean;
}

export interface Bar<Kind extends string> {
  /** Label of the bar's period, such as `2026-11-20` or `14:00`. */
  readonly label: string;
  readonly counts: Readonly<Record<Kind, number>>;
  /**
   * Counts of the bar at the same place in the period before the chart's, which is as long. The chart compares only its
   * first kind. Undefined if it compares none.
   */
  readonly before?: Readonly<Record<Kind, number>>;
}

interface BarChartProps<Kind extends string> {
  readonly title: string;
  readonly series: readonly Series<Kind>[];
  readonly bars: readonly Bar<Kind>[];
  /** Text in place of a chart that has nothing to show. */
  readonly empty: string;
}

/** Height of the chart in pixels. Widths are in percent of the page, so that texts keep their size. */
const HEIGHT = 196;
const BELOW = 22;
/** Width in percent that the numbers of the axis take, to the left of the bars. */
const LEFT = 7;
/** Maximum number of ticks on the axis above zero. */
const TICKS_MAX = 3;
/** A bar is cut if it would be this many times as high as the axis needs for the kinds that may not be cut. */
const CUT_FACTOR = 3;
/** Maximum number of labels (times) below the bars. More would not fit on a phone with a 12-hour clock. */
const LABELS_MAX = 3;

/**
 * Stacked bars with a legend, and the same numbers as a table for screen readers. A dashed outline around the lowest
 * part of a bar shows the first kind in the previous period, if it has counts. Arrow keys move from bar to bar.
 */
export function BarChart<Kind extends string>(props: BarChartProps<Kind>): VNode {
  const { title, series, bars, empty } = props;
  const totals = bars.map(({ counts }) => series.reduce((sum, { kind }) => sum + counts[kind], 0));
  const earlier = bars.map((bar) => countBefore(series, bar));
  const before = earlier.reduce((sum, count) => sum + count, 0);
  const highest = Math.max(0, ...totals);
  const uncut = bars.map(({ counts }) =>
    series.reduce((sum, { kind, mayBeCut }) => sum + (mayBeCut ? 0 : counts[kind]), 0),
  );
  const needed = 2 * Math.max(...uncut, ...earlier);
  const isCut = needed > 0 && highest > CUT_FACTOR * needed;
  const most = highest === 0 ? 0 : isCut ? needed : Math.max(highest, ...earlier);
  return (
    <figure class="chart">
      <figcaption>
        {title}
        <ul class="legend">
          {series.map(({ kind, name, color }, nth) => (
            <>
              <li>
                <span class={`key bar-${color}`} aria-hidden="true" />
                {name} <b>{grouped(bars.reduce((sum, { counts }) => sum + counts[kind], 0))}</b>
              </li>
              {nth > 0 || before === 0 ? null : (
                <li>
                  <span class="key before" aria-hidden="true" />
                  {nameBefore(series)} <b>{grouped(before)}</b>
                </li>
              )}
            </>
          ))}
        </ul>
      </figcaption>
      {most === 0 ? (
        <p class="empty">{empty}</p>
      ) : (
        <>
          <Bars {...props} most={most} />
          {isCut ? <p class="quiet">The highest bar is cut: it counts {grouped(highest)}.</p> : null}
          <output class="quiet" />
          <Numbers {...props} isCompared={before > 0} />
        </>
      )}
    </figure>
  );
}

/** Returns the count of the first kind in the corresponding bar of the previous period. */
function countBefore<Kind extends string>([first]: readonly Series<Kind>[], { before }: Bar<Kind>): number {
  return first === undefined ? 0 : (before?.[first.kind] ?? 0);
}

/** Names the dashed outlines, such as `sent in the previous period`. */
function nameBefore<Kind extends string>([first]: readonly Series<Kind>[]): string {
  return `${first?.name} in the previous period`;
}

interface BarsProps<Kind extends string> extends BarChartProps<Kind> {
  /** Highest count that the axis must show. */
  readonly most: number;
}

function Bars<Kind extends string>({ series, bars, most, title }: BarsProps<Kind>): VNode {
  const step = tickStep(most);
  const top = Math.ceil(most / step) * step;
  const toY = (value: number): number => rounded(HEIGHT - (value / top) * (HEIGHT - 8));
  const width = (100 - LEFT) / bars.length;
  /** Returns the SVG path of one kind's part of a bar, which lies above the kinds before it. A bar is one unit wide. */
  const drawBar = (at: number, nth: number, kind: Kind, counts: Bar<Kind>["counts"]): string => {
    const below = series.slice(0, nth).reduce((sum, one) => sum + counts[one.kind], 0);
    return counts[kind] === 0 ? "" : `M${rounded(at + 0.15)} ${toY(below)}h.7V${toY(below + counts[kind])}h-.7z`;
  };
  const drawBefore = (at: number, before: number): string =>
    before === 0 ? "" : `M${rounded(at + 0.05)} ${HEIGHT}V${toY(before)}h.9V${HEIGHT}`;
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
          <title>
            <BarTime label={bar.label} as={hasHours(bar.label) ? "short" : "date"} />
            {sayBar(series, bar)}
          </title>
          <rect class="zone" x={percent(LEFT + at * width)} width={percent(width)} height={HEIGHT} />
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
        <path class="before" d={bars.map((bar, at) => drawBefore(at, countBefore(series, bar))).join("")} />
        {series.map(({ kind, color }, nth) => (
          <path class={`bar-${color}`} d={bars.map(({ counts }, at) => drawBar(at, nth, kind, counts)).join("")} />
        ))}
      </svg>
      <BarLabels bars={bars} />
    </svg>
  );
}

/** The times below the bars: as many as fit, and always that of the last bar. */
function BarLabels<Kind extends string>({ bars }: { readonly bars: readonly Bar<Kind>[] }): VNode {
  const width = (100 - LEFT) / bars.length;
  const every = Math.ceil(bars.length / LABELS_MAX);
  return (
    <>
      {bars.map(({ label }, at) =>
        (bars.length - 1 - at) % every === 0 ? (
          <text
            x={percent(at === bars.length - 1 ? 100 : LEFT + (at + 0.5) * width)}
            y={HEIGHT + BELOW - 4}
            text-anchor={at === bars.length - 1 ? "end" : "middle"}
          >
            <BarTime label={label} as={hasHours(label) ? "clock" : "date"} />
          </text>
        ) : null,
      )}
    </>
  );
}

function sayBar<Kind extends string>(series: readonly Series<Kind>[], bar: Bar<Kind>): string {
  const now = series.map(({ kind, name }) => `${grouped(bar.counts[kind])} ${name}`).join(", ");
  const before = countBefore(series, bar);
  return `: ${now}${before === 0 ? "" : `; ${grouped(before)} ${nameBefore(series)}`}`;
}

/** Returns the distance of ticks on the axis: the smallest of 1, 2, 5, 10, 20 … for which all ticks fit. */
function tickStep(most: number): number {
  for (let size = 1; ; size *= 10) {
    for (const step of [size, 2 * size, 5 * size]) if (step * TICKS_MAX >= most) return step;
  }
}

/** Writes the label of a bar, such as `2026-11-20` or `2026-11-20 14:00`, as a time in the reader's format. */
function BarTime({ label, as }: { readonly label: string; readonly as: "date" | "clock" | "short" }): VNode {
  const times = useTimes();
  const start = Temporal.PlainDateTime.from(label.replace(" ", "T")).toZonedDateTime(times.timezone);
  return <>{formatTime(start.epochMilliseconds, as, times)}</>;
}

function hasHours(label: string): boolean {
  return label.includes(" ");
}

function percent(number: number): string {
  return `${rounded(number)}%`;
}

function Numbers<Kind extends string>(props: BarChartProps<Kind> & { readonly isCompared: boolean }): VNode {
  const { series, bars, title, isCompared } = props;
  const names = [...series.map(({ name }) => name), ...(isCompared ? [nameBefore(series)] : [])];
  return (
    <details>
      <summary>The numbers as a table</summary>
      <div class="tallied" tabIndex={0} role="region" aria-label={`${title}: the numbers`}>
        <NumberTable
          heads={["When", ...names]}
          rows={bars
            .toReversed()
            .map((bar) => [
              <BarTime label={bar.label} as={hasHours(bar.label) ? "short" : "date"} />,
              ...series.map(({ kind }) => bar.counts[kind]),
              ...(isCompared ? [countBefore(series, bar)] : []),
            ])}
        />
      </div>
    </details>
  );
}

/** Rounds to hundredths, which are exact enough for a drawing. */
function rounded(number: number): number {
  return Math.round(number * 100) / 100;
}

/** A rate, and the bounds of its confidence interval; each from 0 to 1. */
export interface BoundedRate {
  readonly rate: number;
  readonly low: number;
  readonly high: number;
}

/** A rate in a chart, with its counts. */
export interface ChartedRate {
  readonly label: ComponentChildren;
  /** The rate; null if there is nothing to measure. */
  readonly rate: BoundedRate | null;
  readonly hits: number;
  readonly trials: number;
  /** True if the rate is certainly the highest. Only then is it drawn in colour. */
  readonly isWinner: boolean;
}

/** Possible distances between two ticks on the axis of rates. */
const RATE_STEPS = [0.01, 0.02, 0.05, 0.1, 0.2] as const;

/** Number of steps between the five ticks of the axis of rates. */
const RATE_TICKS = 4;

/** Returns the rate at the right end of the axis, from 0 to 1, with which all intervals fit. */
export function chooseScale(rates: readonly (BoundedRate | null)[]): number {
  const most = Math.max(0, ...rates.map((rate) => rate?.high ?? 0));
  return (RATE_STEPS.find((step) => step * RATE_TICKS >= most) ?? 1 / RATE_TICKS) * RATE_TICKS;
}

interface RateChartProps {
  readonly title: string;
  /** Words that say which recipients the rates are a share of. */
  readonly base: string;
  readonly rates: readonly ChartedRate[];
  /** Rate at the right end of the axis, 0 to 1. */
  readonly top: number;
}

/** Shows rates with their confidence intervals on a common axis from 0. Renders nothing if no rate can be measured. */
export function RateChart({ title, base, rates, top }: RateChartProps): VNode | null {
  if (rates.every(({ rate }) => rate === null)) return null;
  const ticks = Array.from({ length: RATE_TICKS + 1 }, (_, at) => at / RATE_TICKS);
  const toX = (value: number): string => percent((value / top) * 100);
  return (
    <figure>
      <figcaption>
        {title} <span class="quiet">{base}</span>
      </figcaption>
      <ul class="rates">
        {rates.map(({ label, rate, hits, trials, isWinner }) => (
          <li class={isWinner ? "winner" : undefined}>
            <span>{label}</span>
            <svg height={28} role="img" aria-label={rate === null ? "Nothing to measure" : sayInterval(rate)}>
              {ticks.map((tick) => (
                <line class="grid" x1={percent(tick * 100)} x2={percent(tick * 100)} y2={28} />
              ))}
              {rate === null ? null : (
                <>
                  <title>{sayInterval(rate)}</title>
                  <rect x={toX(rate.low)} y={8} width={toX(rate.high - rate.low)} height={12} rx={3} />
                  <circle cx={toX(rate.rate)} cy={14} r={5} />
                </>
              )}
            </svg>
            <span class="counted">
              {rate === null ? (
                "–"
              ) : (
                <>
                  <b>{formatPercent(rate.rate)}</b> {grouped(hits)} of {grouped(trials)}
                </>
              )}
            </span>
          </li>
        ))}
        <li class="axis" aria-hidden="true">
          <svg height={16}>
            {ticks.map((tick) => (
              <text x={percent(tick * 100)} y={12} text-anchor={tick === 0 ? "start" : tick === 1 ? "end" : "middle"}>
                {formatPercent(tick * top)}
              </text>
            ))}
          </svg>
        </li>
      </ul>
    </figure>
  );
}

function sayInterval({ low, high }: BoundedRate): string {
  return `95 % interval: ${formatPercent(low)} to ${formatPercent(high)}`;
}

const HISTOGRAM_HEIGHT = 16;

/**
 * Draws the number of events over the time between two moments; failed ones are red. Renders nothing if the moments are
 * only minutes apart.
 */
export function Histogram({ bars }: { readonly bars: HistogramBars }): VNode | null {
  if (bars.length === 0) return null;
  const most = Math.max(1, ...bars.map(({ count }) => count));
  // Even the smallest count must be visible, so heights grow with the square root of the count.
  const toHeight = (count: number): number => rounded(Math.max(1.5, Math.sqrt(count / most) * HISTOGRAM_HEIGHT));
  const toBar = (at: number, count: number, color?: string): VNode | null =>
    count === 0 ? null : (
      <rect class={color} x={at + 0.2} y={HISTOGRAM_HEIGHT - toHeight(count)} width={0.6} height={toHeight(count)} />
    );
  return (
    <svg
      class="histogram"
      viewBox={`0 0 ${bars.length} ${HISTOGRAM_HEIGHT}`}
      height={HISTOGRAM_HEIGHT}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {bars.map(({ count, failed }, at) => [toBar(at, count), toBar(at, failed, "bar-4")])}
    </svg>
  );
}
