/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import type { Recorded } from "../../events/catalog.ts";
import type { ChannelName } from "../../events/channel.ts";
import type { Account } from "../../projections/account.ts";
import { channelsOf, pendingOf, type ChannelState, type Deliveries } from "../../projections/deliveries.ts";
import type { Period } from "../../projections/periods.ts";
import type { RunState } from "../../projections/run.ts";
import type { Stats } from "../../projections/stats.ts";
import type { SuspectedCounts } from "../../projections/suspected.ts";
import { BarChart } from "./bar-chart.tsx";
import { ConsoleDocument, grouped, type Shown } from "./document.tsx";
import { EventList } from "./event-list.tsx";
import { Time } from "./time.tsx";

export interface OverviewView {
  readonly shown: Shown;
  readonly stats: Stats;
  readonly account: Account;
  readonly run: RunState | null;
  readonly quota: { readonly limit: number; readonly used: number; readonly resetsAt: string };
  /** Messages of which nobody knows yet whether they arrived. */
  readonly inDoubt: number;
  readonly deliveries: Deliveries;
  readonly configured: readonly ChannelName[];
  readonly days: readonly Period<Stats>[];
  readonly hours: readonly Period<SuspectedCounts>[];
  readonly timezone: string;
  /** Newest first. */
  readonly events: readonly Recorded[];
}

/** How today's run goes, what needs attention, and what happened last. */
export function overviewPage(view: OverviewView): VNode {
  const attention = needsAttention(view);
  return (
    <ConsoleDocument title="reachlog" path="/" shown={view.shown}>
      <h1>Overview</h1>
      {attention.length === 0 ? null : (
        <section class="attention" aria-labelledby="attention">
          <h2 id="attention">Needs attention</h2>
          <ul>
            {attention.map((sentence) => (
              <li>{sentence}</li>
            ))}
          </ul>
        </section>
      )}
      <div class="cards">
        <RunCard run={view.run} account={view.account} />
        <QuotaCard {...view.quota} />
        <StatsCard stats={view.stats} inDoubt={view.inDoubt} />
      </div>
      <div class="charts">
        <MessagesChart {...view} />
        <ClicksChart {...view} />
      </div>
      <Channels {...view} />
      <section aria-labelledby="newest">
        <h2 id="newest">Newest events</h2>
        <EventList events={view.events} />
        <p>
          <a href="/audit">All events</a>
        </p>
      </section>
    </ConsoleDocument>
  );
}

function Card({ title, children }: { readonly title: string; readonly children: ComponentChildren }): VNode {
  return (
    <section class="card">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

function RunCard({ run, account }: Pick<OverviewView, "run" | "account">): VNode {
  const user = account.user === null ? undefined : `@${account.user.username}`;
  return (
    <Card title={run === null ? "No run in progress" : run.dry_run ? "Dry run in progress" : "Run in progress"}>
      {run === null ? null : (
        <>
          <p class="figure">
            {grouped(run.sent)} <small>sent</small> {grouped(run.skipped)} <small>skipped</small> {grouped(run.failed)}{" "}
            <small>failed</small>
          </p>
          <p>
            Started <Time at={run.started_at} />.{" "}
            {run.waiting === null ? null : (
              <>
                It waits ({run.waiting.reason.replaceAll("_", " ")}) until <Time at={run.waiting.until} />.
              </>
            )}
          </p>
        </>
      )}
      <p>
        {account.authorized && user !== undefined ? (
          <>
            Sends as <bdi>{user}</bdi>.
          </>
        ) : (
          <a href="/social/auth">Authorize an X account</a>
        )}
      </p>
    </Card>
  );
}

function QuotaCard({ limit, used, resetsAt }: OverviewView["quota"]): VNode {
  return (
    <Card title="Today's quota">
      <p class="figure">
        {grouped(used)} <small>of {grouped(limit)} messages</small>
      </p>
      <meter min={0} max={limit} value={Math.min(used, limit)} aria-label="Messages used of today's quota" />
      <p>
        Starts again <Time at={resetsAt} />.
      </p>
    </Card>
  );
}

function StatsCard({ stats, inDoubt }: Pick<OverviewView, "stats" | "inDoubt">): VNode {
  return (
    <Card title="All messages">
      <p class="figure">
        {grouped(stats.sent)} <small>sent</small>
      </p>
      <p>
        {grouped(stats.skipped)} skipped, {grouped(stats.failed)} failed, {grouped(inDoubt)} in doubt
      </p>
    </Card>
  );
}

function MessagesChart({ days, timezone }: OverviewView): VNode {
  const bars = days.map(({ start, counts }) => ({ label: dayOf(start, timezone), counts }));
  const series = [
    { kind: "sent", name: "sent", color: 1 },
    { kind: "skipped", name: "skipped", color: 3 },
    { kind: "failed", name: "failed", color: 2 },
  ] as const;
  return (
    <BarChart
      title={`Messages per day, last ${days.length} days`}
      series={series}
      bars={bars}
      empty="No message was sent, skipped or failed in these days."
    />
  );
}

function ClicksChart({ hours, timezone }: OverviewView): VNode {
  const bars = hours.map(({ start, counts }) => ({
    label: hourOf(start, timezone),
    counts: { people: counts.clicks - counts.suspected, suspected: counts.suspected, bots: counts.bots },
  }));
  const series = [
    { kind: "people", name: "people", color: 1 },
    { kind: "suspected", name: "suspected", color: 2 },
    { kind: "bots", name: "bots", color: 3 },
  ] as const;
  return (
    <BarChart
      title={`Clicks per hour, last ${hours.length} hours`}
      series={series}
      bars={bars}
      empty="No link was clicked in these hours."
    />
  );
}

function Channels({ deliveries, configured }: OverviewView): VNode {
  return (
    <section aria-labelledby="channels">
      <h2 id="channels">Channels</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of channels">
        <table>
          <thead>
            <tr>
              <th scope="col">channel</th>
              <th scope="col">state</th>
              {["delivered", "pending", "skipped", "in doubt", "dead letters"].map((head) => (
                <th scope="col" class="number">
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {channelsOf(deliveries).map(([name, channel]) => (
              <tr>
                <th scope="row">{name}</th>
                <td>
                  <ChannelStatus channel={channel} isConfigured={configured.includes(name)} />
                </td>
                {[channel.dispatched, pendingOf(channel), channel.skipped, channel.in_doubt, channel.dead].map(
                  (count) => (
                    <td class="number">{grouped(count)}</td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function ChannelStatus({
  channel,
  isConfigured,
}: {
  readonly channel: ChannelState;
  readonly isConfigured: boolean;
}): VNode {
  if (channel.suspended !== null) {
    return (
      <>
        <span class="status red">suspended</span> since <Time at={channel.suspended.since} />:{" "}
        <bdi>{channel.suspended.detail}</bdi>
      </>
    );
  }
  if (!isConfigured) return <span class="status grey">not configured</span>;
  const isBehind = pendingOf(channel) > 0;
  return <span class={`status ${isBehind ? "amber" : "green"}`}>{isBehind ? "delivering" : "up to date"}</span>;
}

function needsAttention({ account, deliveries, inDoubt }: OverviewView): readonly VNode[] {
  const sentences: VNode[] = [];
  if (account.user !== null && !account.authorized) {
    sentences.push(
      <>
        X does not accept the authorization of <bdi>@{account.user.username}</bdi> any more:{" "}
        <a href="/social/auth">authorize again</a>.
      </>,
    );
  }
  if (inDoubt > 0) {
    sentences.push(
      <>
        {grouped(inDoubt)} {inDoubt === 1 ? "message is" : "messages are"} in doubt:{" "}
        <code>reachlog outreach reconcile</code> looks them up.
      </>,
    );
  }
  for (const [name, { suspended, dead, in_doubt }] of channelsOf(deliveries)) {
    if (suspended !== null) {
      sentences.push(
        <>
          {name} is suspended: <bdi>{suspended.detail}</bdi>. <code>reachlog deliveries resume {name}</code> starts it
          again.
        </>,
      );
    }
    if (dead > 0) {
      sentences.push(
        <>
          {name} has {grouped(dead)} dead {dead === 1 ? "letter" : "letters"}: <code>reachlog deliveries list</code>.
        </>,
      );
    }
    if (in_doubt > 0) {
      sentences.push(
        <>
          {grouped(in_doubt)} {in_doubt === 1 ? "dispatch" : "dispatches"} to {name} may or may not have arrived.
        </>,
      );
    }
  }
  return sentences;
}

function dayOf(ms: number, timezone: string): string {
  return Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timezone).toPlainDate().toString();
}

function hourOf(ms: number, timezone: string): string {
  const hour = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timezone);
  return `${hour.toPlainDate().toString()} ${hour.toPlainTime().toString({ smallestUnit: "minute" })}`;
}
