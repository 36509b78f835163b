/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import {
  createResults,
  GROUPINGS,
  parseInterval,
  type Figures,
  type Grouping,
  type Interval,
  type ResultRate,
  type ResultRow,
  type ResultTable,
} from "../../history/results.ts";
import {
  CLICKS_NOTE,
  describeMergedDays,
  formatDays,
  formatPercent,
  GROUP_MEMBERS,
  isTrackedOnly,
  nameMember,
  TRACKED_NOTE,
} from "../../history/results-format.ts";
import { DAY_MS, toDay } from "../../../projections/time.ts";
import { isoTime } from "../../platform/clock.ts";
import { formatDuration } from "../../platform/format-duration.ts";
import { ServiceError } from "../../platform/service-error.ts";
import { requiredSampleSize } from "../../platform/rate-statistics.ts";
import { addressWith, hrefForLink } from "../hrefs.ts";
import { grouped } from "../../platform/counts-and-lists.ts";
import { ConsoleDocument, Section } from "../document.tsx";
import { Field, Select } from "../parts/action-form.tsx";
import { RateBar } from "../parts/charts.tsx";
import { OptionalLink, RunLink } from "../parts/events.tsx";
import { createSortedHeads, Table } from "../parts/table.tsx";
import { readSort, sortRows } from "../sorted-page.ts";
import { consolePage, readChoice, readText, type View } from "../page-context.ts";
import { A, PageForm } from "../parts/link.tsx";

/** Days that are shown if no interval is chosen. */
export const DAYS_SHOWN = 30;

/** The outcomes of messages, compared with the previous interval, and how certain the difference is. */
export const resultsPage = consolePage({
  reads: ["account", "results", "runs", "visits"],
  render: renderResults,
});

async function renderResults(view: View<"account" | "results" | "runs" | "visits">): Promise<VNode> {
  const by = readChoice(view, "by", GROUPINGS) ?? "variant";
  const interval = intervalIn(view);
  const table = await createResults({ results: view.state("results"), visits: view.state("visits") }, by, interval);
  return (
    <ConsoleDocument title="Results" path="/results" view={view}>
      <h1>Results</h1>
      <p>
        {formatDays(interval)}
        {table.previous === undefined ? "" : `, next to ${formatDays(table.previous)}`}. Days are UTC.
      </p>
      <details class="folded">
        <summary>Choose rows and days</summary>
        <Filter by={by} interval={interval} />
      </details>
      <p>
        <A href="/what-if">What other rules would have done</A>
      </p>
      {table.mergedTo === null ? null : <p>{describeMergedDays(table)}</p>}
      {table.rows.length === 0 ? (
        <p class="empty">
          No message was attempted in these days. A message with a line <code>---</code> between its variants compares
          them.
        </p>
      ) : (
        <>
          <Total table={table} />
          <Verdict view={view} by={by} rows={table.rows} />
          <RateChart view={view} title="Replied" by={by} table={table} rateOf={({ reply_rate }) => reply_rate} />
          <RateChart
            view={view}
            title="Clicked, of recipients who granted tracking"
            by={by}
            table={table}
            rateOf={({ click_rate }) => click_rate}
          />
          <AllRows view={view} by={by} table={table} />
          <Text view={view} rows={table.rows} />
        </>
      )}
    </ConsoleDocument>
  );
}

/** The interval of the page's address. Without valid days in it, the last days. */
function intervalIn(view: View): Interval {
  const [from, to] = [readText(view, "from"), readText(view, "to")];
  try {
    if (from !== undefined || to !== undefined) return parseInterval(from, to, view.now);
  } catch (fault) {
    if (!(fault instanceof ServiceError)) throw fault;
  }
  return lastDays(view.now);
}

export function lastDays(now: number): Interval {
  return parseInterval(isoTime(now - (DAYS_SHOWN - 1) * DAY_MS), undefined, now);
}

function Filter({ by, interval }: { readonly by: Grouping; readonly interval: Interval }): VNode {
  const { from = "", to = "" } = toDays(interval);
  return (
    <PageForm class="filter" action="/results">
      <Select name="by" label="By" values={GROUPINGS} chosen={by} none={null} />
      <Field label="From" type="date" name="from" value={from} />
      <Field label="To" type="date" name="to" value={to} />
      <button>Show</button>
    </PageForm>
  );
}

function Total({ table: { total } }: { readonly table: ResultTable }): VNode {
  const { sent, failed, in_doubt, replied, reply_rate, clicks, tracked } = total.figures;
  const { previous } = total;
  const { total: all = 0, unique = 0, suspected = 0, bots = 0 } = clicks ?? {};
  return (
    <dl class="card figures" aria-label="All rows">
      <Figure title="Sent" {...compare(sent, previous?.sent)}>
        {grouped(failed)} failed, {grouped(in_doubt)} in doubt
      </Figure>
      <Figure title="Replied" {...compare(replied, previous?.replied)}>
        {reply_rate === null ? "nothing sent" : `${formatPercent(reply_rate.rate)} of those sent`}
      </Figure>
      <Figure title="Clicks, total" {...compare(all, previous?.clicks?.total)}>
        {grouped(suspected)} suspected to be X itself and {grouped(bots)} by bots, not counted
      </Figure>
      <Figure title="Clicks, unique visitors" {...compare(unique, previous?.clicks?.unique)}>
        an estimate, each once a link and day
      </Figure>
      <Figure title="Recipients who clicked" {...compare(tracked.clicked, previous?.tracked.clicked)}>
        of {grouped(tracked.recipients)} who granted tracking; {firstClick(total.figures)}
      </Figure>
    </dl>
  );
}

interface FigureProps {
  readonly title: string;
  /** The page that the title links to. */
  readonly href?: string;
  readonly value: string;
  readonly change?: string | undefined;
  /** An explanation of the figure. */
  readonly children?: ComponentChildren;
}

/** A member of a list of figures. */
export function Figure({ title, href, value, change, children }: FigureProps): VNode {
  return (
    <div>
      <dt>
        <OptionalLink href={href}>{title}</OptionalLink>
      </dt>
      <dd class="figure">
        {value}
        {change === undefined ? null : <small> {change}</small>}
      </dd>
      {children === undefined ? null : <dd class="quiet">{children}</dd>}
    </div>
  );
}

/** A count, and its change against the interval before. */
function compare(count: number, before: number | undefined): Pick<FigureProps, "value" | "change"> {
  const value = grouped(count);
  if (before === undefined) return { value };
  if (before === 0) return { value, change: count === 0 ? "0 before" : "none before" };
  const change = Math.round((count / before - 1) * 100);
  return { value, change: `${change < 0 ? "−" : "+"}${Math.abs(change)} %, ${grouped(before)} before` };
}

function firstClick({ tracked: { first_click_ms, clicked } }: Figures): string {
  if (first_click_ms === null) return "no first click yet";
  return `median first click after ${formatDuration(Math.round(first_click_ms / 1_000))} (${grouped(clicked)})`;
}

interface RowsProps {
  readonly view: View;
  readonly by: Grouping;
  readonly rows: readonly ResultRow[];
}

/**
 * Compares the two variants of the newest message with the highest reply rates. Renders nothing if rows are not by
 * variant, or if the rates are equal.
 */
function Verdict({ view, by, rows }: RowsProps): VNode | null {
  const newest = rows.at(-1)?.group.template;
  const [best, next] = rows
    .flatMap(({ group, figures: { sent, reply_rate } }) =>
      by === "variant" && group.template === newest && reply_rate !== null
        ? [{ name: group.variant, sent, ...reply_rate }]
        : [],
    )
    .sort((one, other) => other.rate - one.rate);
  if (best === undefined || next === undefined || best.rate === next.rate) return null;
  const points = ((best.rate - next.rate) * 100).toFixed(1);
  const isClear = best.low > next.high;
  const more = Math.max(0, (requiredSampleSize(best.rate, next.rate) ?? 0) - Math.min(best.sent, next.sent));
  return (
    <Section id="verdict" title={isClear ? `${best.name} gets more replies` : "Too early to call"} class="card">
      <p>
        <bdi>{best.name}</bdi> is ahead of <bdi>{next.name}</bdi> by {points} points in replies,{" "}
        {isClear ? "and" : "but"} the intervals {isClear ? "do not " : ""}overlap.
        {isClear || more === 0
          ? null
          : ` A difference of this size needs about ${grouped(more)} more messages of each: ${grouped(Math.ceil((2 * more) / view.settings.dailyLimit))} days at the full quota.`}
      </p>
    </Section>
  );
}

interface RateChartProps {
  readonly view: View<"results" | "runs">;
  readonly title: string;
  readonly by: Grouping;
  readonly table: ResultTable;
  readonly rateOf: (figures: Figures) => ResultRate | null;
}

/** Most rows of a chart; only the table has more. */
const CHART_ROWS_MAX = 26;

/** A rate of each row with its confidence interval, next to the rate in the previous days. */
function RateChart({ view, title, by, table: { rows }, rateOf }: RateChartProps): VNode | null {
  const drawn = rows.slice(-CHART_ROWS_MAX).filter(({ figures }) => rateOf(figures) !== null);
  if (drawn.length === 0) return null;
  const rates = drawn.flatMap(({ figures, previous }) => [rateOf(figures), previous && rateOf(previous)]);
  const top = Math.min(1, Math.ceil(Math.max(...rates.map((rate) => rate?.high ?? 0)) * 10) / 10);
  return (
    <figure class="chart">
      <figcaption>
        {title}
        <ul class="legend">
          <li>
            <span class="key bar-1" aria-hidden="true" />
            these days, 95 % interval (Wilson)
          </li>
          <li>
            <span class="key bar-3" aria-hidden="true" />
            before
          </li>
          <li>bars from 0 to {formatPercent(top)}</li>
        </ul>
      </figcaption>
      <Table
        label={title}
        columns={[...GROUP_MEMBERS[by], "rate", "before"]}
        rowHead={GROUP_MEMBERS[by].length - 1}
        rows={drawn.map((row) => [
          ...renderNames(view, by, row),
          <RateBar rate={rateOf(row.figures)} top={top} />,
          <RateBar rate={row.previous && rateOf(row.previous)} top={top} isBefore />,
        ])}
      />
    </figure>
  );
}

function renderNames(view: View<"results" | "runs">, by: Grouping, { group }: ResultRow): readonly VNode[] {
  return GROUP_MEMBERS[by].map((member) => {
    const name = nameMember(group, member, view.state("results"));
    if (member === "run_id") return <RunLink view={view} runId={name} />;
    return <bdi>{member === "link" ? <A href={hrefForLink(name)}>{name}</A> : name}</bdi>;
  });
}

/** Functions that read a figure of a row, by the head of its column. */
type FiguresByHead = Readonly<Record<string, (row: ResultRow) => number | null | undefined>>;

const MESSAGE_COUNTS: FiguresByHead = {
  sent: ({ figures }) => figures.sent,
  failed: ({ figures }) => figures.failed,
  "in doubt": ({ figures }) => figures.in_doubt,
  replied: ({ figures }) => figures.replied,
  "opted out": ({ figures }) => figures.opted_out,
};

const LINK_COUNTS: FiguresByHead = {
  "clicks, total": ({ figures }) => figures.clicks?.total,
  "clicks, unique": ({ figures }) => figures.clicks?.unique,
  suspected: ({ figures }) => figures.clicks?.suspected,
  bots: ({ figures }) => figures.clicks?.bots,
};

const TRACKED_COUNTS: FiguresByHead = {
  "granted tracking": ({ figures }) => figures.tracked.recipients,
  clicked: ({ figures }) => figures.tracked.clicked,
  clicks: ({ figures }) => figures.tracked.clicks,
  suspected: ({ figures }) => figures.tracked.suspected,
};

const FIRST_CLICK = "first click";

function AllRows({ view, by, table }: { view: View<"results" | "runs">; by: Grouping; table: ResultTable }): VNode {
  const isTracked = isTrackedOnly(by);
  const members = GROUP_MEMBERS[by];
  const figures: FiguresByHead = {
    ...MESSAGE_COUNTS,
    ...(isTracked ? TRACKED_COUNTS : LINK_COUNTS),
    [FIRST_CLICK]: (row) => row.figures.tracked.first_click_ms,
    "sent before": ({ previous }) => previous?.sent,
    "replied before": ({ previous }) => previous?.replied,
  };
  const csv = addressWith("/social/results", new URLSearchParams({ by }), { ...toDays(table.interval), format: "csv" });
  // By default the rows are sorted by no column: the newest row is the last one.
  const sort = readSort<string>(view, [...members, ...Object.keys(figures)], { by: "", order: "ascending" });
  const sortMember = members.find((member) => member === sort.by);
  const sortValue = (row: ResultRow) =>
    sortMember === undefined
      ? figures[sort.by]?.(row)
      : row.group[sortMember] && nameMember(row.group, sortMember, view.state("results"));
  const toColumn = createSortedHeads(view, "/results", sort);
  return (
    <Section id="rows" title={`By ${by}`}>
      <Table
        label={`Results by ${by}`}
        columns={[
          ...members.map((head) => toColumn(head, head, "ascending")),
          ...Object.keys(figures).map((head) =>
            toColumn(head, head, "descending", head === FIRST_CLICK ? undefined : "number"),
          ),
        ]}
        rowHead={members.length - 1}
        rows={sortRows(table.rows, sortValue, sort).map((row) => [
          ...renderNames(view, by, row),
          ...Object.entries(figures).map(([head, figureIn]) => {
            const figure = figureIn(row);
            return head === FIRST_CLICK && figure !== null ? firstClick(row.figures) : figure;
          }),
        ])}
        isTall
      />
      <p class="quiet">{isTracked ? TRACKED_NOTE : CLICKS_NOTE}</p>
      {table.omitted === 0 ? null : <p>{grouped(table.omitted)} earlier rows are left out: choose fewer days.</p>}
      <p>
        <A href={csv}>All figures as of now, as CSV</A>
      </p>
    </Section>
  );
}

/** The first and the last day of an interval, as addresses have them. */
function toDays({ from, to }: Interval) {
  return { from: from === undefined ? undefined : toDay(from), to: to === undefined ? undefined : toDay(to - DAY_MS) };
}

/** The text of the configured message, if rows are of it. The texts of earlier messages are only in the log. */
function Text({ view, rows }: Omit<RowsProps, "by">): VNode | null {
  const { template } = view.settings;
  if (template === undefined || !rows.some(({ group }) => group.template === template.id)) return null;
  return (
    <section aria-labelledby="text">
      <h2 id="text">
        The message <bdi>{template.name ?? template.id}</bdi>
      </h2>
      <pre>{template.text}</pre>
    </section>
  );
}
