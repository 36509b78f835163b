/** @jsxImportSource preact */
import type { VNode } from "preact";
import { grouped } from "../document.tsx";
import { numbers, Table } from "./table.tsx";
import { labelOf, periodsOf } from "../../../projections/periods.ts";
import type { Quarters } from "../../../projections/quarters.ts";
import { noClicks, type SuspectedCounts } from "../../../projections/suspected.ts";
import { lastPeriods, type View } from "../view.ts";

/** One kind of what is stacked in each bar. */
export interface Series<Kind extends string> {
  readonly kind: Kind;
  readonly name: string;
  /** `.bar-1` and so on of the stylesheet: the same kind has the same color in each chart. */
  readonly color: 1 | 2 | 3;
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

const HEIGHT = 120;
const BAR_WIDTH = 20;
const GAP = 4;

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
  const width = bars.length * (BAR_WIDTH + GAP);
  return (
    <>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={title}>
        {bars.map((bar, at) => {
          let below = 0;
          return (
            <g>
              <title>{`${bar.label}: ${series.map(({ kind, name }) => `${grouped(bar.counts[kind])} ${name}`).join(", ")}`}</title>
              <rect class="hover" x={at * (BAR_WIDTH + GAP)} y={0} width={BAR_WIDTH + GAP} height={HEIGHT} />
              {series.map(({ kind, color }) => {
                const height = (bar.counts[kind] / most) * HEIGHT;
                below += height;
                return height === 0 ? null : (
                  <rect
                    class={`bar-${color}`}
                    x={at * (BAR_WIDTH + GAP) + GAP / 2}
                    y={rounded(HEIGHT - below)}
                    width={BAR_WIDTH}
                    height={rounded(height)}
                  />
                );
              })}
            </g>
          );
        })}
      </svg>
      <div class="axis" aria-hidden="true">
        <span>{bars[0]?.label}</span>
        <span>at most {grouped(most)}</span>
        <span>{bars.at(-1)?.label}</span>
      </div>
    </>
  );
}

function Numbers<Kind extends string>({ series, bars, title }: BarsProps<Kind>): VNode {
  return (
    <details>
      <summary>{title}: the numbers</summary>
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
