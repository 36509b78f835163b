/** @jsxImportSource preact */
import type { VNode } from "preact";
import { EVENT_TYPES } from "../../../events/catalog.ts";
import { isSkewed, SKEW_REMEDY, skewInWords } from "../../log/log-clock.ts";
import { countPeopleAt } from "../../../projections/contacts.ts";
import { channelsOf, pendingOf } from "../../../projections/deliveries.ts";
import { noMessages } from "../../../projections/timeline.ts";
import { type ResultRate, sumMessages } from "../../history/results.ts";
import { formatPercent } from "../../history/results-format.ts";
import { showQuota } from "../../outreach/outreach.operations.ts";
import { isoTime } from "../../platform/clock.ts";
import { ActionForm } from "../parts/action-form.tsx";
import { BarChart } from "../parts/charts.tsx";
import { ClicksChart, RangePicker, readBars } from "../parts/time-charts.tsx";
import { ChannelStatus } from "../parts/channel-status.tsx";
import { countInWords, grouped } from "../../platform/counts-and-lists.ts";
import { ConsoleDocument, Section } from "../document.tsx";
import { DAYS_SHOWN, Figure, lastDays } from "./results.tsx";
import { Lines, ROUTINE, toLines } from "../parts/news.tsx";
import { runCard, Card } from "../parts/run-card.tsx";
import { missingForRun } from "../parts/setup-steps.tsx";
import { Time } from "../parts/time.tsx";
import { consolePage, askOperation, newestEvents, type View } from "../page-context.ts";
import { Table } from "../parts/table.tsx";
import { A } from "../parts/link.tsx";

/** Events read for the newest lines: many clicks and deliveries become one line. */
const NEWEST_READ = 200;
const NEWEST_LINES = 12;

/** The run of today, what needs attention, and the newest events. */
export const overviewPage = consolePage({
  reads: ["account", "deliveries", "quota", "results", "run", "runs", "stats", "suspected", "timeline"],
  render: renderOverview,
});

async function renderOverview(
  view: View<"account" | "deliveries" | "quota" | "results" | "run" | "runs" | "stats" | "suspected" | "timeline">,
): Promise<VNode> {
  const run = await runCard(view);
  const inDoubt = [...view.state("run").open.values()].filter((attempt) => attempt.in_doubt).length;
  const attention = needsAttention(view, inDoubt);
  const types = EVENT_TYPES.filter((type) => !ROUTINE.includes(type));
  const events = await newestEvents(view, { types, limit: NEWEST_READ });
  return (
    <ConsoleDocument
      title="reachlog"
      path="/"
      view={view}
      changes={view.asOf === undefined ? null : <ChangesSince view={view} />}
    >
      <h1>Overview</h1>
      <SetupLeft view={view} />
      <SinceLastVisit view={view} />
      <div class="columns">
        {run}
        {await renderQuota(view)}
      </div>
      {attention.length === 0 ? null : (
        <Section id="attention" title="Needs attention" class="card attention">
          <ul>
            {attention.map((sentence) => (
              <li>{sentence}</li>
            ))}
          </ul>
        </Section>
      )}
      {await renderFigures(view, inDoubt)}
      <RangePicker view={view} path="/" />
      <div class="charts">
        <MessagesChart view={view} />
        <ClicksChart view={view} unit="hour" quarters={view.state("suspected").quarters} />
      </div>
      <div class="columns">
        <Section id="newest" title="Newest events">
          <Lines view={view} lines={toLines(events).slice(0, NEWEST_LINES)} />
          <p>
            <A href="/activity">All activity</A>
          </p>
        </Section>
        <Channels view={view} />
      </div>
      {await instances(view)}
    </ConsoleDocument>
  );
}

interface Viewed {
  readonly view: View<"account" | "deliveries" | "timeline">;
}

/** The figures of the overview, then and now. */
function ChangesSince({
  view: { state, stateNow, position },
}: {
  readonly view: View<"deliveries" | "stats" | "suspected">;
}): VNode {
  const contacts = stateNow("contacts");
  const then = readFigures(state, countPeopleAt(contacts, position));
  const now = readFigures(stateNow, contacts.people.size);
  return (
    <section class="changes" aria-labelledby="since">
      <b id="since">What changed since:</b>
      <ul>
        {then.map(([label, before], at) => {
          const after = now[at]?.[1] ?? 0;
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
      <a href={`/activity?from=${position + 1}`} data-moment>
        What happened since
      </a>
    </section>
  );
}

/** The caller counts the recipients, because their list takes long to open. */
function readFigures(
  state: View<"deliveries" | "stats" | "suspected">["state"],
  recipients: number,
): readonly (readonly [label: string, count: number])[] {
  const { sent, skipped, failed } = state("stats");
  const { clicks, suspected } = state("suspected").all;
  const channels = channelsOf(state("deliveries"));
  return [
    ["Sent", sent],
    ["Skipped", skipped],
    ["Failed", failed],
    ["Clicks by people", clicks - suspected],
    ["Dispatches", channels.reduce((sum, [, { dispatched }]) => sum + dispatched, 0)],
    ["Recipients", recipients],
  ];
}

/** Names the setup steps that are left; renders nothing once a run can start. */
function SetupLeft({ view }: Viewed): VNode | null {
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
 * Links to the events since the last visit of this browser. Renders nothing if it was not here before, or nothing
 * happened since.
 */
function SinceLastVisit({ view: { lastVisit, position } }: Viewed): VNode | null {
  if (lastVisit === undefined || lastVisit.position >= position) return null;
  return (
    <p>
      <A href={`/activity?show=news&from=${lastVisit.position + 1}`}>What happened since you were here</A>{" "}
      <Time at={isoTime(lastVisit.at)} />.
    </p>
  );
}

async function renderQuota(view: View<"quota">): Promise<VNode> {
  const { used, limit, resets_at } = await askOperation(view, showQuota, {});
  return (
    <Card title="Today's quota">
      <p class="figure">
        {grouped(used)} <small>of {grouped(limit)} messages</small>
      </p>
      <meter min={0} max={limit} value={Math.min(used, limit)} aria-label="Messages used of today's quota" />
      {resets_at === null ? null : (
        <p>
          Starts again at <Time at={resets_at} isExact />.
        </p>
      )}
    </Card>
  );
}

/** The counts of messages by outcome, each with a link to its recipients or events, and the rates of the last days. */
async function renderFigures(view: View<"results" | "stats">, inDoubt: number): Promise<VNode> {
  const { sent, skipped, failed } = view.state("stats");
  const { figures, previous } = await sumMessages(view.state("results"), lastDays(view.now));
  const { replied, tracked, reply_rate, click_rate } = figures;
  return (
    <dl class="card figures" aria-label="All messages">
      <Figure title="Sent" href="/activity?type=DirectMessageSent" value={grouped(sent)} />
      <Figure title="Skipped" href="/activity?type=DirectMessageSkipped" value={grouped(skipped)} />
      <Figure title="Failed" href="/activity?type=DirectMessageFailed" value={grouped(failed)} />
      <Figure title="In doubt" href="/people?status=in_doubt" value={grouped(inDoubt)} />
      <Figure title="Replied" href="/results" {...rateInWords(reply_rate, previous?.reply_rate)}>
        {grouped(replied)} of {grouped(figures.sent)} sent in {DAYS_SHOWN} days
      </Figure>
      <Figure title="Clicked" href="/results" {...rateInWords(click_rate, previous?.click_rate)}>
        {grouped(tracked.clicked)} of {grouped(tracked.recipients)} tracked in {DAYS_SHOWN} days
      </Figure>
    </dl>
  );
}

/** A rate, and its change against the days before. */
function rateInWords(rate: ResultRate | null, before: ResultRate | null | undefined) {
  const value = rate === null ? "–" : formatPercent(rate.rate);
  if (rate === null || before == null) return { value };
  const points = (rate.rate - before.rate) * 100;
  return { value, change: `${points < 0 ? "−" : "+"}${Math.abs(points).toFixed(1)} points` };
}

function MessagesChart({ view }: Viewed): VNode {
  const { quarters } = view.state("timeline");
  const { words, unit, bars } = readBars(view, {
    unit: "day",
    quarters,
    none: noMessages,
    toCounts: ({ sent, skipped, failed }) => ({ sent, skipped, failed }),
  });
  const series = [
    { kind: "sent", name: "sent", color: 1 },
    { kind: "skipped", name: "skipped", color: 3 },
    { kind: "failed", name: "failed", color: 4 },
  ] as const;
  return (
    <BarChart
      title={`Messages per ${words}`}
      series={series}
      bars={bars}
      empty={`No message was sent, skipped or failed in these ${unit}s.`}
    />
  );
}

function Channels({ view }: Viewed): VNode {
  return (
    <Section id="channels" title="Channels">
      <ul class="rows">
        {channelsOf(view.state("deliveries")).map(([name, channel]) => (
          <li>
            <h3>
              <A href={`/deliveries?channel=${name}`}>{name}</A>
            </h3>
            <p>
              <ChannelStatus view={view} name={name} />
            </p>
            <p class="quiet">
              {grouped(channel.dispatched)} delivered, {grouped(pendingOf(channel))} pending, {grouped(channel.skipped)}{" "}
              skipped
            </p>
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** The instances that serve the log, with their roles. Renders nothing if there is only one. */
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

function needsAttention(view: View<"account" | "deliveries">, inDoubt: number): readonly VNode[] {
  const { verified } = view;
  const { user, authorized } = view.state("account");
  const skewMs = view.live?.skewMs() ?? 0;
  const held = view.asOf === undefined && view.hasNow("contacts") ? view.stateNow("contacts").held : 0;
  const sentences = [
    verified?.data.result === "broken" && (
      <>
        <A href="/activity">The log is broken</A>: <bdi>{verified.data.fault}</bdi>.
      </>
    ),
    isSkewed(skewMs) && (
      <>
        No run starts: {skewInWords(skewMs)}; {SKEW_REMEDY}.
      </>
    ),
    user !== null && !authorized && (
      <>
        X no longer accepts the authorization of <bdi>@{user.username}</bdi>: <A href="/social/auth">authorize again</A>
        .
      </>
    ),
    held > 0 && (
      <>
        <A href="/people?status=held">{countInWords(held, "reply", "replies")}</A> may ask to be left alone: nothing is
        sent until you decide.
      </>
    ),
    inDoubt > 0 && (
      <>
        {countInWords(inDoubt, "message is", "messages are")} in doubt: <code>reachlog outreach reconcile</code> looks
        them up.
      </>
    ),
    ...channelsOf(view.state("deliveries")).flatMap(([name, { suspended, dead, in_doubt }]) => [
      suspended !== null && (
        <>
          <A href={`/deliveries?channel=${name}`}>{name} is suspended</A>: <bdi>{suspended.detail}</bdi>.{" "}
          <code>reachlog deliveries resume {name}</code> starts it again.
          <ActionForm view={view} back="/" action="/console/deliveries/resume" fields={{ channel: name }}>
            <button>Resume {name}</button>
          </ActionForm>
        </>
      ),
      dead > 0 && (
        <>
          {name} has <A href={`/deliveries?channel=${name}#letters`}>{countInWords(dead, "dead letter")}</A>.
        </>
      ),
      in_doubt > 0 && (
        <>
          <A href={`/deliveries?channel=${name}#in-doubt`}>
            {countInWords(in_doubt, "dispatch", "dispatches")} to {name}
          </A>{" "}
          may or may not have arrived.
        </>
      ),
    ]),
  ];
  return sentences.filter((sentence) => sentence !== false);
}
