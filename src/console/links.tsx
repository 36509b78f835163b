/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { LinkClicks } from "../../projections/clicks.ts";
import { LINKS_MAX } from "../../projections/recent-links.ts";
import type { Period } from "../../projections/periods.ts";
import type { SuspectedCounts } from "../../projections/suspected.ts";
import { BarChart } from "./bar-chart.tsx";
import { ConsoleDocument, grouped, type Shown } from "./document.tsx";
import { Time } from "./time.tsx";

/** Rows of one page of a list. */
export const LINKS_SHOWN = 100;

export interface LinkRow extends Pick<LinkClicks, "clicks" | "bots" | "first" | "last"> {
  /** `domain/short_code` */
  readonly link: string;
  readonly suspected: number;
}

export interface LinksView {
  readonly shown: Shown;
  readonly all: SuspectedCounts;
  /** Clicks of links that are counted together, as there are more than {@link LINKS_MAX}. */
  readonly others: SuspectedCounts;
  readonly days: readonly Period<SuspectedCounts>[];
  readonly timezone: string;
  /** Clicked last first. */
  readonly links: readonly LinkRow[];
  /** How many links come before these; undefined `next`: these are the last. */
  readonly skipped: number;
  readonly next: number | undefined;
}

/** Every link that was clicked, and who clicked it: people, suspected fetchers of X, bots. */
export function linksPage(view: LinksView): VNode {
  const { shown, all, others, links, skipped, next } = view;
  return (
    <ConsoleDocument title="Links" path="/links" shown={shown}>
      <h1>Links</h1>
      <p>
        {grouped(all.clicks - all.suspected)} clicks by people, {grouped(all.suspected)} suspected to be X itself,{" "}
        {grouped(all.bots)} by bots.
      </p>
      <ClicksPerDay days={view.days} timezone={view.timezone} series={ALL_SERIES} />
      {links.length === 0 ? (
        <p class="empty">
          No link was clicked yet. Whoever redirects your short links posts each click to{" "}
          <code>/api/tracking/event</code>.
        </p>
      ) : (
        <LinkTable links={links} />
      )}
      {others.clicks + others.bots === 0 ? null : (
        <p>
          {grouped(others.clicks)} more clicks by people and {grouped(others.bots)} by bots are of links that were not
          clicked for long: {grouped(LINKS_MAX)} links are counted one by one.
        </p>
      )}
      <p>
        {skipped > 0 ? <a href="/links">First links</a> : null}{" "}
        {next === undefined ? null : <a href={`/links?skip=${next}`}>More links</a>}
      </p>
    </ConsoleDocument>
  );
}

function LinkTable({ links }: { readonly links: readonly LinkRow[] }): VNode {
  return (
    <div class="scroll tall" tabIndex={0} role="region" aria-label="Links">
      <table>
        <thead>
          <tr>
            <th scope="col">link</th>
            {["people", "suspected", "bots"].map((head) => (
              <th scope="col" class="number">
                {head}
              </th>
            ))}
            <th scope="col">last click</th>
          </tr>
        </thead>
        <tbody>
          {links.map(({ link, clicks, suspected, bots, last }) => (
            <tr>
              <th scope="row" class="breakable">
                <a href={`/links?${new URLSearchParams({ link })}`}>
                  <bdi>{link}</bdi>
                </a>
              </th>
              {[clicks - suspected, suspected, bots].map((count) => (
                <td class="number">{grouped(count)}</td>
              ))}
              <td>
                <Time at={last} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export interface LinkView {
  readonly shown: Shown;
  /** Undefined: it was never clicked, or is counted among others. */
  readonly row: LinkRow | undefined;
  readonly link: string;
  /** The stream with its clicks. */
  readonly stream: string;
  /** Different addresses and user agents among the clicks of people that were read. */
  readonly visitors: number;
  /** How many of its newest clicks were read for this page, and whether there are more. */
  readonly read: number;
  readonly isWhole: boolean;
  readonly days: readonly Period<SuspectedCounts>[];
  readonly timezone: string;
}

/** One link: its clicks over time, and by how many visitors. */
export function linkPage({ shown, row, link, stream, visitors, read, isWhole, days, timezone }: LinkView): VNode {
  return (
    <ConsoleDocument title={link} path="/links" shown={shown}>
      <h1 class="breakable">
        <bdi>{link}</bdi>
      </h1>
      {row === undefined ? (
        <p class="empty">No click of this link is counted by itself.</p>
      ) : (
        <p>
          {grouped(row.clicks - row.suspected)} clicks by people, {grouped(row.suspected)} suspected,{" "}
          {grouped(row.bots)} by bots; first <Time at={row.first} />, last <Time at={row.last} />.
        </p>
      )}
      {read === 0 ? null : (
        <>
          <p>
            {grouped(visitors)} different {visitors === 1 ? "visitor" : "visitors"} (address and user agent)
            {isWhole ? "" : ` among the newest ${grouped(read)} clicks`}.
          </p>
          <ClicksPerDay days={days} timezone={timezone} series={LINK_SERIES} />
        </>
      )}
      <p>
        <a href={`/audit?${new URLSearchParams({ stream })}`}>Events of this link</a>
      </p>
    </ConsoleDocument>
  );
}

const ALL_SERIES = [
  { kind: "people", name: "people", color: 1 },
  { kind: "suspected", name: "suspected", color: 2 },
  { kind: "bots", name: "bots", color: 3 },
] as const;

/** Which of a link's clicks are suspected depends on messages, which its own clicks do not show. */
const LINK_SERIES = [
  { kind: "people", name: "people and suspected", color: 1 },
  { kind: "bots", name: "bots", color: 3 },
] as const;

interface ClicksPerDayProps extends Pick<LinksView, "days" | "timezone"> {
  readonly series: typeof ALL_SERIES | typeof LINK_SERIES;
}

function ClicksPerDay({ days, timezone, series }: ClicksPerDayProps): VNode {
  const bars = days.map(({ start, counts }) => ({
    label: Temporal.Instant.fromEpochMilliseconds(start).toZonedDateTimeISO(timezone).toPlainDate().toString(),
    counts: { people: counts.clicks - counts.suspected, suspected: counts.suspected, bots: counts.bots },
  }));
  return (
    <BarChart
      title={`Clicks per day, last ${days.length} days`}
      series={series}
      bars={bars}
      empty="No link was clicked in these days."
    />
  );
}
