/** @jsxImportSource preact */
import type { VNode } from "preact";
import { OtherFields, type PagePath } from "../document.tsx";
import { labelOf, periodsOf, type PeriodsQuery } from "../../../projections/periods.ts";
import { QUARTERS_MAX, type Quarters } from "../../../projections/quarters.ts";
import { noClicks, type SuspectedCounts } from "../../../projections/suspected.ts";
import { HOUR_MS } from "../../../projections/time.ts";
import { addressWith } from "../hrefs.ts";
import { readChoice, readText, type View } from "../page-context.ts";
import { Field } from "./action-form.tsx";
import { type Bar, BarChart } from "./charts.tsx";
import { A, PageForm } from "./link.tsx";

/** More days would make a page heavy, and of busy weeks fewer days are kept. */
const DAYS_MAX = 90;

/** The ranges that a reader may choose. */
const RANGES = {
  "24h": { unit: "hour", count: 24, words: "24 h" },
  "7d": { unit: "day", count: 7, words: "7 d" },
  "30d": { unit: "day", count: 30, words: "30 d" },
  "90d": { unit: "day", count: DAYS_MAX, words: "90 d" },
} as const;

const RANGE_NAMES = Object.keys(RANGES) as readonly (keyof typeof RANGES)[];

/** Periods if no range is chosen: enough to show the rhythm of days or of weeks. They are then fitted to the data. */
const FITTED = { hour: 48, day: 30 } as const;

type Unit = keyof typeof FITTED;

/**
 * The days `from` to `to` of the page's address, only the newest if they are too many. Up to two days are shown by
 * hours.
 */
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

/** Undefined if the parameter is not a day. */
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
  /** The unit if the address has no range. */
  readonly unit: Unit;
  readonly quarters: Quarters<Counts>;
  readonly none: () => Counts;
  readonly toCounts: (counts: Counts) => Readonly<Record<Kind, number>>;
}

/** The bars of the range in the page's address, and the range in words, such as `day, last 30 days`. */
export function readBars<Counts extends Record<keyof Counts, number>, Kind extends string>(
  view: View,
  { unit, quarters, none, toCounts }: BarsQuery<Counts, Kind>,
): { readonly words: string; readonly unit: Unit; readonly bars: readonly Bar<Kind>[] } {
  const own = readOwnRange(view);
  const name = readChoice(view, "range", RANGE_NAMES);
  const chosen = name === undefined ? { unit, count: FITTED[unit] } : RANGES[name];
  const query = own ?? { unit: chosen.unit, count: chosen.count, until: view.now, timezone: view.settings.timezone };
  const periods = periodsOf(quarters, query, none).map((period) => ({ ...period, counts: toCounts(period.counts) }));
  const shown = own === undefined && name === undefined ? fitToData(periods) : periods;
  const earlier = { ...query, count: shown.length, until: (shown[0]?.start ?? 0) - 1 };
  const before = periodsOf(quarters, earlier, none);
  const [oldest = 0] = quarters.keys();
  // Compares only with periods of which everything is kept, because a part of them would mislead.
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

/** Links to the ranges, the first of which is fitted to the data, and a form for any other range. */
export function RangePicker({ view, path }: { view: View; path: PagePath }): VNode {
  const { query } = view;
  const own = readOwnRange(view);
  const chosen = readChoice(view, "range", RANGE_NAMES);
  const isCurrent = (name: string | undefined): boolean => own === undefined && name === chosen;
  return (
    <div class="range">
      <ul class="tabs" aria-label="Range of the charts">
        {[undefined, ...RANGE_NAMES].map((name) => (
          <li>
            <A
              href={addressWith(path, query, { range: name, from: undefined, to: undefined })}
              aria-current={isCurrent(name) ? "true" : undefined}
            >
              {name === undefined ? "Fitted" : RANGES[name].words}
            </A>
          </li>
        ))}
      </ul>
      <PageForm class="filter" action={path} data-apply>
        <OtherFields query={query} names={["range", "from", "to"]} />
        {(["from", "to"] as const).map((name) => (
          <Field
            label={name === "from" ? "From" : "To"}
            type="date"
            name={name}
            min={FIRST_DAY}
            value={own === undefined ? "" : (readText(view, name) ?? "")}
          />
        ))}
        <button>Show</button>
      </PageForm>
    </div>
  );
}

const ALL_SERIES = [
  { kind: "people", name: "people", color: 1 },
  { kind: "suspected", name: "suspected", color: 2 },
  { kind: "bots", name: "bots", color: 3 },
] as const;

/**
 * The clicks of one link do not show which of them are suspected, because that depends on messages. Only the newest
 * clicks are read.
 */
const LINK_SERIES = [
  { kind: "people", name: "people and suspected", color: 1 },
  { kind: "bots", name: "bots", color: 3 },
] as const;

/** Leaves out the first periods in which nothing is counted, but keeps a few periods at least. */
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
