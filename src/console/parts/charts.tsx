/** @jsxImportSource preact */
import type { VNode } from "preact";
import { grouped, OtherFields, type PagePath } from "../document.tsx";
import { numbers, Table } from "./table.tsx";
import { labelOf, periodsOf, type PeriodsQuery } from "../../../projections/periods.ts";
import { QUARTERS_MAX, type Quarters } from "../../../projections/quarters.ts";
import { noClicks, type SuspectedCounts } from "../../../projections/suspected.ts";
import { HOUR_MS } from "../../../projections/time.ts";
import { addressWith } from "../hrefs.ts";
import { lastPeriods, readChoice, readText, type View } from "../view.ts";

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
  /** All kinds together in the period that is as many periods earlier as there are bars; undefined: not compared. */
  readonly before?: number;
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

/** How the outlines are called. */
const BEFORE = "as long before";

type BarsProps<Kind extends string> = Pick<BarChartProps<Kind>, "series" | "bars" | "title">;

function Bars<Kind extends string>({ series, bars, most, title }: BarsProps<Kind> & { readonly most: number }): VNode {
  const step = tickStep(most);
  const top = Math.ceil(most / step) * step;
  const toY = (value: number): number => rounded(HEIGHT - (value / top) * (HEIGHT - 8));
  const width = (100 - LEFT) / bars.length;
  /** Of one kind, on those of the kinds before it; a bar is one wide. */
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

function Numbers<Kind extends string>(props: BarsProps<Kind> & { readonly isCompared: boolean }): VNode {
  const { series, bars, title, isCompared } = props;
  const names = [...series.map(({ name }) => name), ...(isCompared ? [BEFORE] : [])];
  return (
    <details>
      <summary>The numbers as a table</summary>
      <Table label={`${title}: the numbers`} columns={["when", ...numbers(...names)]}>
        {bars.toReversed().map((bar) => (
          <tr>
            <th scope="row">{bar.label}</th>
            {series.map(({ kind }) => (
              <td class="number">{grouped(bar.counts[kind])}</td>
            ))}
            {isCompared ? <td class="number">{grouped(bar.before ?? 0)}</td> : null}
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

/** More days would make a page heavy, and of busy weeks less is kept. */
const DAYS_MAX = 90;

/** What a reader may choose. */
const RANGES = {
  "24h": { unit: "hour", count: 24, words: "24 h" },
  "7d": { unit: "day", count: 7, words: "7 d" },
  "30d": { unit: "day", count: 30, words: "30 d" },
  "90d": { unit: "day", count: DAYS_MAX, words: "90 d" },
} as const;

const RANGE_NAMES = Object.keys(RANGES) as readonly (keyof typeof RANGES)[];

/** Without a choice: long enough for the rhythm of days or of weeks, and fitted to the data. */
const FITTED = { hour: 48, day: 30 } as const;

type Unit = keyof typeof FITTED;

/** The days `from` to `to` of the address, the newest of them where they are too many; up to two are shown by hours. */
function readOwnRange(view: View): PeriodsQuery | undefined {
  const { timezone } = view.settings;
  const [from, to] = [readDay(view, "from"), readDay(view, "to")];
  if (from === undefined && to === undefined) return undefined;
  const today = Temporal.Instant.fromEpochMilliseconds(view.now).toZonedDateTimeISO(timezone).startOfDay();
  const last = to === undefined || to.epochMilliseconds > view.now ? today : to;
  const first = from ?? last.subtract({ days: FITTED.day - 1 });
  const days = 1 + first.until(last, { largestUnit: "day" }).days;
  if (days < 1) return undefined;
  const until = Math.min(view.now, last.add({ days: 1 }).epochMilliseconds - 1);
  if (days > 2) return { unit: "day", count: Math.min(days, DAYS_MAX), until, timezone };
  return { unit: "hour", count: Math.ceil((until + 1 - first.epochMilliseconds) / HOUR_MS), until, timezone };
}

/** Undefined for what is no day. */
function readDay(view: View, name: "from" | "to") {
  try {
    return Temporal.PlainDate.from(readText(view, name) ?? "").toZonedDateTime(view.settings.timezone);
  } catch {
    return undefined;
  }
}

/** No log is older. */
const FIRST_DAY = "2000-01-01";

interface BarsQuery<Counts, Kind extends string> {
  /** Without a choice in the address. */
  readonly unit: Unit;
  readonly quarters: Quarters<Counts>;
  readonly none: () => Counts;
  readonly toCounts: (counts: Counts) => Readonly<Record<Kind, number>>;
}

/** The bars of the range that the address asks for, and in words which they are, such as `day, last 30 days`. */
export function readBars<Counts extends Record<keyof Counts, number>, Kind extends string>(
  view: View,
  { unit, quarters, none, toCounts }: BarsQuery<Counts, Kind>,
): { readonly words: string; readonly unit: Unit; readonly bars: readonly Bar<Kind>[] } {
  const own = readOwnRange(view);
  const name = readChoice(view, "range", RANGE_NAMES);
  const chosen = name === undefined ? { unit, count: FITTED[unit] } : RANGES[name];
  const query = own ?? lastPeriods(view, chosen.unit, chosen.count);
  const periods = periodsOf(quarters, query, none).map((period) => ({ ...period, counts: toCounts(period.counts) }));
  const shown = own === undefined && name === undefined ? fitToData(periods) : periods;
  const earlier = { ...query, count: shown.length, until: (shown[0]?.start ?? 0) - 1 };
  const before = periodsOf(quarters, earlier, none);
  const [oldest = 0] = quarters.keys();
  // Of what is no longer kept, a part says nothing.
  const isKept = quarters.size < QUARTERS_MAX || oldest <= (before[0]?.start ?? 0);
  const bars = shown.map(({ start, counts }, at) => ({
    label: labelOf(start, query),
    counts,
    ...(isKept ? { before: total(toCounts(before[at]?.counts ?? none())) } : {}),
  }));
  const ends = [bars[0], bars.at(-1)].map((bar) => bar?.label);
  const words = own === undefined ? `last ${bars.length} ${query.unit}s` : `${ends[0]} to ${ends[1]}`;
  return { words: `${query.unit}, ${words}`, unit: query.unit, bars };
}

function total(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

interface RangePickerProps {
  readonly view: View;
  /** Of the page. */
  readonly path: PagePath;
}

/** Links to the ranges, of which the first fits the data, and a form for any other. */
export function RangePicker({ view, path }: RangePickerProps): VNode {
  const { query } = view;
  const own = readOwnRange(view);
  const chosen = readChoice(view, "range", RANGE_NAMES);
  const isCurrent = (name: string | undefined): boolean => own === undefined && name === chosen;
  return (
    <div class="range">
      <ul class="tabs" aria-label="Range of the charts">
        {[undefined, ...RANGE_NAMES].map((name) => (
          <li>
            <a
              href={addressWith(path, query, { range: name, from: undefined, to: undefined })}
              aria-current={isCurrent(name) ? "true" : undefined}
            >
              {name === undefined ? "Fitted" : RANGES[name].words}
            </a>
          </li>
        ))}
      </ul>
      <form class="filter" method="get" action={path} data-apply>
        <OtherFields query={query} names={["range", "from", "to"]} />
        {(["from", "to"] as const).map((name) => (
          <label>
            {name === "from" ? "From" : "To"}{" "}
            <input
              type="date"
              name={name}
              min={FIRST_DAY}
              value={own === undefined ? "" : (readText(view, name) ?? "")}
            />
          </label>
        ))}
        <button>Show</button>
      </form>
    </div>
  );
}

const ALL_SERIES = [
  { kind: "people", name: "people", color: 1 },
  { kind: "suspected", name: "suspected", color: 2 },
  { kind: "bots", name: "bots", color: 3 },
] as const;

/** Which of one link's clicks are suspected depends on messages, which its own clicks do not show; only the newest are read. */
const LINK_SERIES = [
  { kind: "people", name: "people and suspected", color: 1 },
  { kind: "bots", name: "bots", color: 3 },
] as const;

/** The last periods from the first of them in which something is counted, a few at least; the others say nothing. */
export function fitToData<Fitted extends { readonly counts: object }>(periods: readonly Fitted[]): readonly Fitted[] {
  const first = periods.findIndex(({ counts }) => Object.values(counts).some((count: number) => count > 0));
  return first === -1 ? periods : periods.slice(Math.max(0, Math.min(first, periods.length - BARS_MIN)));
}

const BARS_MIN = 12;

interface ClicksChartProps {
  readonly view: View;
  readonly unit: Unit;
  readonly quarters: Quarters<SuspectedCounts>;
  readonly isOfLink?: boolean;
}

/** Clicks over the days or hours of the range, by who made them. */
export function ClicksChart({ view, unit, quarters, isOfLink = false }: ClicksChartProps): VNode {
  const toCounts = ({ clicks, suspected, bots }: SuspectedCounts) => ({ people: clicks - suspected, suspected, bots });
  const found = readBars(view, { unit, quarters, none: noClicks, toCounts });
  return (
    <BarChart
      title={`Clicks per ${found.words}`}
      series={isOfLink ? LINK_SERIES : ALL_SERIES}
      bars={isOfLink ? found.bars.map(({ label, counts }) => ({ label, counts })) : found.bars}
      empty={`No link was clicked in these ${found.unit}s.`}
    />
  );
}
