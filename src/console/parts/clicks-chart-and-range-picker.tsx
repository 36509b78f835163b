/** @jsxImportSource preact */
import type { VNode } from "preact";
import {
  chooseOwnRange,
  choosePeriods,
  countClickPeriods,
  findBestHour,
  listRanges,
  periodsInWords,
  RANGE_NAMES,
  type ChartRange,
  type ClickQuarters,
  type PeriodsChoice,
  type PeriodUnit,
} from "../../history/chart-figures.ts";
import { countInWords, grouped } from "../../platform/format-numbers-and-lists.ts";
import { addressWith } from "../hrefs.ts";
import { readChoice, readText, type View } from "../page-context.ts";
import { Field } from "./action-form.tsx";
import { BarChart } from "./charts.tsx";
import { OtherFields, PageForm, Tabs } from "./links-forms-and-tabs.tsx";
import { Time, toIso } from "./time.tsx";

/** Earliest day that a reader can choose, because no log is older. */
const FIRST_DAY = "2000-01-01";

/** Returns the parameters of the page's address that choose the range of its charts. */
export function readRangeFields(view: View) {
  return { range: readChoice(view, "range", RANGE_NAMES), from: readText(view, "from"), to: readText(view, "to") };
}

/** Reads the range of a chart from the page's address. */
function readRange(view: View): ChartRange {
  return { ...readRangeFields(view), now: view.now, timezone: view.settings.timezone };
}

/** Returns the periods of the range in the page's address or, without one, the newest periods of length `unit`. */
export function readPeriods(view: View, unit: PeriodUnit): PeriodsChoice {
  return choosePeriods(readRange(view), unit);
}

/** The periods of a chart in words, such as `day, last 30 days`. */
export function describePeriods(
  view: View,
  periods: PeriodsChoice,
  bars: readonly { readonly label: string }[],
): string {
  return periodsInWords(readRange(view), periods, bars);
}

/** Links to the ranges, and a form for any other one. The first link is for the range that fits the data. */
export function RangePicker({ view, path }: { view: View; path: `/${string}` }): VNode {
  const { query } = view;
  const range = readRange(view);
  const own = chooseOwnRange(range);
  return (
    <div class="range">
      <Tabs
        label="Range of the charts"
        isInPlace
        tabs={listRanges(range).map(({ fields, words, isCurrent }) => [
          addressWith(path, query, fields),
          words,
          isCurrent,
        ])}
      />
      <PageForm class="filter" action={path} data-apply>
        <OtherFields names={["range", "from", "to"]} />
        {(["from", "to"] as const).map((name) => (
          <Field
            label={name === "from" ? "From" : "To"}
            type="date"
            name={name}
            min={FIRST_DAY}
            value={own === undefined ? "" : (range[name] ?? "")}
          />
        ))}
        <button>Show</button>
      </PageForm>
    </div>
  );
}

const CLICK_SERIES = [
  { kind: "people", name: "people", color: 1 },
  { kind: "suspected", name: "suspected", color: 2 },
  { kind: "bots", name: "bots", color: 3, mayBeCut: true },
] as const;

interface ClicksChartProps {
  readonly view: View;
  readonly unit: PeriodUnit;
  readonly quarters: ClickQuarters;
  /**
   * True if the clicks are those of one link. The chart then does not compare, because only the newest clicks of a link
   * are read.
   */
  readonly isOfLink?: boolean;
}

/** Draws the clicks in each day or hour of the range, by who made them. */
export function ClicksChart({ view, unit, quarters, isOfLink = false }: ClicksChartProps): VNode {
  const periods = readPeriods(view, unit);
  const bars = countClickPeriods(quarters, periods);
  return (
    <BarChart
      title={`Clicks per ${describePeriods(view, periods, bars)}`}
      series={CLICK_SERIES}
      bars={isOfLink ? bars.map(({ label, counts }) => ({ label, counts })) : bars}
      empty={`No link was clicked in these ${periods.unit}s.`}
    />
  );
}

/** Says in which hour of a chart most people clicked. Renders nothing if none did. */
export function BestHour({ view, unit, quarters }: Omit<ClicksChartProps, "isOfLink">): VNode | null {
  const best = findBestHour(quarters, readPeriods(view, unit));
  if (best === undefined) return null;
  const { from, to, people, others } = best;
  return (
    <p>
      Most clicks by people: <Time at={toIso(from)} as="weekday" />–<Time at={toIso(to)} as="clock" />,{" "}
      <b>{grouped(people)}</b>
      {others === 0 ? "" : `; as many in ${countInWords(others, "other hour")}`}.
    </p>
  );
}
