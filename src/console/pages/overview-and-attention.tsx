/** @jsxImportSource preact */
import type { VNode } from "preact";
import { readChannels } from "../../delivery/channel-backlog-and-undelivered.ts";
import { readNews } from "../../history/log-and-news-pages.ts";
import { countMessagePeriods, readChangedFigures, readTotals } from "../../history/chart-figures.ts";
import { RESULT_DAYS_SHOWN } from "../../history/sum-replies-clicks-and-conversions.ts";
import { readAttention, readOpenItems } from "../../outreach/attention/read-attention.ts";
import { readQuota } from "../../outreach/run-and-dry-run-page-data.ts";
import { countInWords, formatPercent, grouped } from "../../platform/format-numbers-and-lists.ts";
import { BarChart, type BoundedRate } from "../parts/charts.tsx";
import {
  ClicksChart,
  describePeriods,
  RangePicker,
  readPeriods,
  readRangeFields,
} from "../parts/clicks-chart-and-range-picker.tsx";
import { AttentionList, DecidedList } from "../parts/attention.tsx";
import { ChannelLine } from "../parts/channel-status.tsx";
import { ConsoleDocument, Head, Section } from "../document.tsx";
import { Figure } from "./results.tsx";
import { NewsDays } from "../parts/news.tsx";
import { addressWith } from "../hrefs.ts";
import { runCard, saySkipped } from "../parts/run-card.tsx";
import { missingForRun } from "../parts/setup-steps.tsx";
import { formatTime, readTimes, Time, toIso } from "../parts/time.tsx";
import { consolePage, useView, type View } from "../page-context.ts";
import { Table } from "../parts/table.tsx";
import { A, ImportLink } from "../parts/links-forms-and-tabs.tsx";

const NEWEST_LINES = 12;

/** Maximum number of items needing attention on the overview. The page Attention has all of them. */
const ATTENTION_SHOWN = 5;

/** Page Overview: today's run, what needs attention, and the newest events. */
const READS = [
  ...(["account", "deliveries", "news", "quota"] as const),
  ...(["run", "runs", "stats", "suspected", "timeline"] as const),
];

export const overviewPage = consolePage({
  // The sums of an earlier moment can mostly be computed backwards from the present results. Only if these do not reach
  // that far, the results are folded for the page.
  reads: ({ hasNow }) => (hasNow("results") ? READS : [...READS, "results"]),
  render: renderOverview,
});

async function renderOverview(view: View<(typeof READS)[number] | "results">): Promise<VNode> {
  const run = await runCard(view);
  const totals = await readTotals(view);
  const open = await readOpenItems(view, view.settings, view.live);
  const more = open.length - ATTENTION_SHOWN;
  const news = await readNews(view, { timezone: view.settings.timezone, limit: NEWEST_LINES });
  return (
    <ConsoleDocument
      title="reachlog"
      path="/"
      view={view}
      changes={view.asOf === undefined ? null : <ChangesSince view={view} />}
    >
      <Head title="Overview" says={news.open[0]?.sums}>
        <p class="actions">
          <A class="button narrow" href="/campaigns">
            Campaigns
          </A>
          {view.formToken === undefined ? null : <ImportLink look="button" label="Import people…" />}
        </p>
      </Head>
      <SetupLeft view={view} />
      <SinceLastVisit />
      {open.length === 0 ? null : (
        <Section
          id="attention"
          title={["Needs attention ", <span class="badge bad">{grouped(open.length)}</span>]}
          class="card attention"
        >
          <AttentionList view={view} back="/" items={open.slice(0, ATTENTION_SHOWN)} />
          <p class="more">
            <A href="/attention">{more > 0 ? `And ${grouped(more)} more` : "Show all"}</A>
          </p>
        </Section>
      )}
      <div class="columns">
        {run}
        {await renderQuota(view)}
      </div>
      <Totals totals={totals} />
      <Section id="charts" title="Over time">
        <RangePicker view={view} path="/" />
        <div class="charts">
          <MessagesChart view={view} />
          <ClicksChart view={view} unit="hour" quarters={view.state("suspected").quarters} />
        </div>
        <MostClicked view={view} />
      </Section>
      <div class="columns">
        <Section id="newest" title="Newest events">
          <NewsDays view={view} news={{ ...news, summed: [] }} />
          <p>
            <A href="/activity">All activity</A>
          </p>
        </Section>
        {await renderChannels(view)}
      </div>
      {await instances(view)}
    </ConsoleDocument>
  );
}

/** Page Attention: all items that wait for an operator, and the decisions of the last 15 minutes. */
export const attentionPage = consolePage({
  reads: ["account", "deliveries", "run", "runs"],
  async render(view) {
    const { open, decided } = await readAttention(view, view.settings, view.live);
    const left =
      open.length === 0 ? "Nothing needs you." : `${countInWords(open.length, "open item")}, most severe first.`;
    return (
      <ConsoleDocument title="Needs attention" view={view}>
        <Head title="Needs attention" says={left} />
        <Section id="open" title={<span class="unseen">Open</span>} class="card attention">
          {open.length === 0 ? (
            <p class="empty">No dead letters, nothing in doubt, and all channels deliver.</p>
          ) : (
            <AttentionList view={view} back="/attention" items={open} />
          )}
        </Section>
        {decided.length === 0 ? null : (
          <Section id="decided" title="Decided in the last minutes" class="card attention">
            <DecidedList view={view} items={decided} />
          </Section>
        )}
      </ConsoleDocument>
    );
  },
});

/** Shows how the overview's numbers have changed between the page's earlier moment and now. */
function ChangesSince({ view }: { readonly view: View<"deliveries" | "stats" | "suspected"> }): VNode {
  return (
    <section class="changes" aria-labelledby="since">
      <b id="since">What changed since:</b>
      <ul>
        {readChangedFigures(view).map(({ label, before, after }) => {
          const change = after - before;
          return (
            <li>
              {label}{" "}
              <b>
                {change === 0 ? "±" : change > 0 ? "+" : "−"}
                {grouped(Math.abs(change))}
              </b>{" "}
              ({grouped(before)} → {grouped(after)})
            </li>
          );
        })}
      </ul>
      <a href={`/activity?from=${view.position + 1}`} data-moment>
        What happened since
      </a>
    </section>
  );
}

/** Names the setup steps that are not done yet. Renders nothing once a run can start. */
function SetupLeft({ view }: { readonly view: View<"account"> }): VNode | null {
  const left = missingForRun(view).map(({ title }) => title);
  if (left.length === 0) return null;
  return (
    <p>
      {view.position === 0 ? "Welcome. " : ""}Before a run can start: {left.join(", ")}.{" "}
      <A href="/setup">What to set up</A>
    </p>
  );
}

/**
 * Links to the events since this browser's last visit. Renders nothing without an earlier visit, or if there are none.
 */
function SinceLastVisit(): VNode | null {
  const { lastVisit, position } = useView();
  if (lastVisit === undefined || lastVisit.position >= position) return null;
  return (
    <p>
      <A href={`/activity?show=news&from=${lastVisit.position + 1}`}>What happened since you were here</A>{" "}
      <Time at={toIso(lastVisit.at)} />.
    </p>
  );
}

async function renderQuota(view: View<"quota">): Promise<VNode> {
  const { used, limit, resets_at } = await readQuota(view);
  return (
    <Section
      id="quota"
      class="card"
      title={view.asOf === undefined ? "Today's quota" : `Quota of ${formatTime(view.now, "date", readTimes(view))}`}
    >
      <p class="figure">
        {grouped(used)} <small>of {grouped(limit)} messages</small>
      </p>
      <meter min={0} max={limit} value={Math.min(used, limit)} aria-label="Messages used of the day's quota" />
      {resets_at === null ? null : (
        <p>
          Starts again at <Time at={resets_at} />.
        </p>
      )}
    </Section>
  );
}

/**
 * Shows the counts of messages by outcome, each with a link to their recipients or events, and the rates of the last 30
 * days.
 */
function Totals({ totals }: { readonly totals: Awaited<ReturnType<typeof readTotals>> }): VNode {
  const { sent, skipped, contacted, failed, inDoubt, recent } = totals;
  const { figures, previous } = recent;
  const { replied, tracked, reply_rate, click_rate } = figures;
  return (
    <dl class="card figures" aria-label="All messages">
      <Figure title="Sent" href="/activity?type=DirectMessageSent" value={grouped(sent)} change="all time">
        <A href="/activity?type=DirectMessageSkipped">{saySkipped(skipped, contacted)}</A>,{" "}
        <A href="/activity?type=DirectMessageFailed">{grouped(failed)} failed</A>,{" "}
        <A href="/people?status=in_doubt">{grouped(inDoubt)} in doubt</A>
      </Figure>
      <Figure title="Replied" href="/results" {...rateInWords(reply_rate, previous?.reply_rate)}>
        {grouped(replied)} of {grouped(figures.sent)} sent in {RESULT_DAYS_SHOWN} days
      </Figure>
      <Figure title="Clicked" href="/results" {...rateInWords(click_rate, previous?.click_rate)}>
        {grouped(tracked.clicked)} of {grouped(tracked.recipients)} tracked in {RESULT_DAYS_SHOWN} days
      </Figure>
    </dl>
  );
}

/** Writes a rate, and how it differs from that of the 30 days before. */
function rateInWords(rate: BoundedRate | null, before: BoundedRate | null | undefined) {
  const value = rate === null ? "–" : formatPercent(rate.rate);
  if (rate === null || before == null) return { value };
  const points = (rate.rate - before.rate) * 100;
  return { value, change: `${points < 0 ? "−" : "+"}${Math.abs(points).toFixed(1)} points` };
}

function MessagesChart({ view }: { readonly view: View<"timeline"> }): VNode {
  const periods = readPeriods(view, "day");
  const bars = countMessagePeriods(view, periods);
  const series = [
    { kind: "sent", name: "sent", color: 1 },
    { kind: "skipped", name: "skipped", color: 3 },
    { kind: "failed", name: "failed", color: 4 },
  ] as const;
  return (
    <BarChart
      title={`Messages per ${describePeriods(view, periods, bars)}`}
      series={series}
      bars={bars}
      empty={`No message was sent, skipped or failed in these ${periods.unit}s.`}
    />
  );
}

/**
 * Number of days, today included, for which the link to the list of most clicked links asks. For these days the clicks
 * projection still keeps the counts of each link.
 */
const LINK_DAYS = 3;

/** Leads to the links that were clicked most in the chosen range or, without one, in the last days. */
function MostClicked({ view }: { readonly view: View }): VNode {
  const { range, from, to } = readRangeFields(view);
  const isChosen = (range ?? from ?? to) !== undefined;
  const today = Temporal.Instant.fromEpochMilliseconds(view.now).toZonedDateTimeISO(view.settings.timezone);
  const first = today.toPlainDate().subtract({ days: LINK_DAYS - 1 });
  return (
    <p>
      <A href={addressWith("/links", new URLSearchParams(), { range, from: isChosen ? from : first.toString(), to })}>
        Links clicked most in {isChosen ? "this time" : `${LINK_DAYS} days`}
      </A>
    </p>
  );
}

async function renderChannels(view: View<"deliveries">): Promise<VNode> {
  const channels = await readChannels(view);
  return (
    <Section id="channels" title="Channels" class="card">
      <ul>
        {channels.map((channel) => (
          <ChannelLine view={view} channel={channel} />
        ))}
      </ul>
      <p>
        <A href="/deliveries">Deliveries</A>
      </p>
    </Section>
  );
}

/** Shows the instances that serve the log, with their roles. Renders nothing if there is only one. */
async function instances({ live }: View): Promise<VNode | null> {
  const all = live?.instances() ?? [];
  if (live === undefined || all.length < 2) return null;
  const holders = Object.entries(await live.roles());
  return (
    <Section id="instances" title="Instances">
      <Table
        label="Table of instances"
        columns={["address", "version", "since", "does for all"]}
        rows={all.map(({ id, url, version, started_at }, index) => [
          <>
            <A href={url}>{url}</A>
            {index === 0 ? " (this one)" : null}
          </>,
          version,
          <Time at={started_at} />,
          holders.flatMap(([role, holder]) => (holder === id ? [role] : [])).join(", "),
        ])}
      />
    </Section>
  );
}
