/** @jsxImportSource preact */
import type { VNode } from "preact";
import { labelOf, periodsOf } from "../../../projections/periods.ts";
import type { Quarters } from "../../../projections/quarters.ts";
import { noClicks, type SuspectedCounts } from "../../../projections/suspected.ts";
import { BarChart } from "./bar-chart.tsx";
import { lastPeriods, type View } from "../view.ts";

const DAYS_SHOWN = 30;
const HOURS_SHOWN = 48;

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

interface ClicksChartProps {
  readonly view: View;
  readonly unit: "day" | "hour";
  readonly quarters: Quarters<SuspectedCounts>;
  /** Of one link only. */
  readonly isOfLink?: boolean;
}

/** Clicks over the newest days or hours, by who made them. */
export function ClicksChart({ view, unit, quarters, isOfLink = false }: ClicksChartProps): VNode {
  const query = lastPeriods(view, unit, unit === "day" ? DAYS_SHOWN : HOURS_SHOWN);
  const bars = periodsOf(quarters, query, noClicks).map(({ start, counts: { clicks, suspected, bots } }) => ({
    label: labelOf(start, query),
    counts: { people: clicks - suspected, suspected, bots },
  }));
  return (
    <BarChart
      title={`Clicks per ${unit}, last ${query.count} ${unit}s`}
      series={isOfLink ? LINK_SERIES : ALL_SERIES}
      bars={bars}
      empty={`No link was clicked in these ${unit}s.`}
    />
  );
}
