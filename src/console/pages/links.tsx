/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Recorded } from "../../../events/catalog.ts";
import { quarterAt, type Quarters } from "../../../projections/quarters.ts";
import { COUNTED_LINKS_MAX } from "../../../projections/recent-links.ts";
import { noClicks, type SuspectedCounts } from "../../../projections/suspected.ts";
import { msOf } from "../../../projections/time.ts";
import { streamsOfLink } from "../../history/history.ts";
import { linkKey } from "../../../projections/sent-links.ts";
import { ClicksChart, RangePicker } from "../parts/time-charts.tsx";
import { canonicalAddress } from "../../platform/ip-address.ts";
import { countInWords, grouped } from "../../platform/counts-and-lists.ts";
import { ConsoleDocument, Section } from "../document.tsx";
import { EventList, LinkName } from "../parts/events.tsx";
import { ConfirmedAction, Field } from "../parts/action-form.tsx";
import { renderSentTo } from "../parts/link-recipients.tsx";
import { Time } from "../parts/time.tsx";
import { createSortedPage, readPlace, readSort, toSortValue } from "../sorted-page.ts";
import { consolePage, newestEvents, type View } from "../page-context.ts";
import { createSortedHeads, ListPages, Table } from "../parts/table.tsx";
import { A } from "../parts/link.tsx";

/** Rows of one page of a list. */
const LINKS_SHOWN = 100;

/** Clicks that the page of a link lists one by one. */
const CLICKS_SHOWN = 20;

/** Newest clicks that the page of a link reads: it must not take longer the older the link is. */
const LINK_CLICKS_READ_MAX = 5_000;

const LINK_COLUMNS = ["link", "people", "suspected", "bots", "last"] as const;
type LinkColumn = (typeof LINK_COLUMNS)[number];

/** Every link that was clicked, and who clicked it: people, suspected fetchers of X, bots. */
export const linksPage = consolePage({
  reads: ["account", "clicks", "suspected"],
  render: renderLinks,
});

function renderLinks(view: View<"account" | "clicks" | "suspected">): VNode {
  const { all, others, quarters } = view.state("suspected");
  const sort = readSort(view, LINK_COLUMNS, { by: "last", order: "descending" });
  const sorted = createSortedPage(sort.order, readPlace(view), LINKS_SHOWN);
  for (const link of view.state("clicks").links.keys()) sorted.add(valueIn(view, link, sort.by), link);
  const { keys, next } = sorted.end();
  const links = keys.flatMap((link) => findRow(view, link) ?? []);
  const head = createSortedHeads(view, "/links", sort);
  const columns = [
    head("link", "link", "ascending", "breakable"),
    head("people", "people", "descending", "number"),
    head("suspected", "suspected", "descending", "number"),
    head("bots", "bots", "descending", "number"),
    head("last click", "last", "descending"),
  ];
  return (
    <ConsoleDocument title="Links" path="/links" view={view}>
      <h1>Links</h1>
      <p>
        {countInWords(all.clicks - all.suspected, "click")} by people, {grouped(all.suspected)} suspected to be X
        itself, {grouped(all.bots)} by bots.
      </p>
      <RangePicker view={view} path="/links" />
      <ClicksChart view={view} unit="day" quarters={quarters} />
      {links.length === 0 ? (
        <p class="empty">
          No clicks yet. Have your link shortener post each click to <code>/api/tracking/event</code>.
        </p>
      ) : (
        <Table
          label="Links"
          columns={columns}
          rows={links.map(({ link, clicks, suspected, bots, last }) => [
            <LinkName link={link} />,
            clicks - suspected,
            suspected,
            bots,
            <Time at={last} />,
          ])}
          isTall
        />
      )}
      {others.clicks + others.bots === 0 ? null : (
        <p>
          {grouped(others.clicks)} more clicks by people and {grouped(others.bots)} by bots are of links that were not
          clicked for long: {grouped(COUNTED_LINKS_MAX)} links are counted one by one.
        </p>
      )}
      <ListPages view={view} path="/links" rows="links" next={next} />
      <ForgetClicks view={view} />
    </ConsoleDocument>
  );
}

/** The value by which a link is sorted. */
function valueIn(view: View<"clicks" | "suspected">, link: string, by: LinkColumn): string {
  if (by === "link") return link;
  if (by === "last") return toSortValue(view.state("clicks").links.get(link)?.last_position ?? 0);
  const { clicks = 0, suspected = 0, bots = 0 } = view.state("suspected").links.get(link) ?? {};
  return toSortValue({ people: clicks - suspected, suspected, bots }[by]);
}

/** One link: its clicks over time, its visitors, and the recipients of its messages. */
export const linkPage = consolePage({
  reads: ["account", "clicks", "contacts", "referrers", "results", "runs", "suspected"],
  render: renderLink,
});

async function renderLink(
  view: View<"account" | "clicks" | "contacts" | "referrers" | "results" | "runs" | "suspected">,
): Promise<VNode> {
  const { domain = "", short_code = "" } = view.parameters;
  const link = linkKey(domain, short_code);
  const streams = streamsOfLink(view.state("clicks"), link);
  const clicks = await readNewest(view, streams, LINK_CLICKS_READ_MAX + 1);
  const { quarters, visitors } = summed(clicks.slice(0, LINK_CLICKS_READ_MAX));
  const row = findRow(view, link);
  return (
    <ConsoleDocument title={link} path="/links" view={view}>
      <h1 class="breakable">
        <bdi>{link}</bdi>
      </h1>
      {row === undefined ? (
        <p class="empty">No click of this link is counted by itself.</p>
      ) : (
        <p>
          {countInWords(row.clicks - row.suspected, "click")} by people, {grouped(row.suspected)} suspected,{" "}
          {grouped(row.bots)} by bots; first <Time at={row.first} />, last <Time at={row.last} />.
        </p>
      )}
      {clicks.length === 0 ? null : (
        <>
          <p>
            {countInWords(visitors, "different visitor")} (address and user agent)
            {clicks.length > LINK_CLICKS_READ_MAX ? ` among the newest ${grouped(LINK_CLICKS_READ_MAX)} clicks` : ""}.
          </p>
          <ClicksChart view={view} unit="day" quarters={quarters} isOfLink />
        </>
      )}
      {await renderSentTo(view, domain, short_code)}
      {clicks.length === 0 ? null : (
        <Section id="newest" title="Newest clicks">
          <EventList view={view} events={clicks.slice(0, CLICKS_SHOWN)} />
          <p>
            {streams.map((stream, at) => (
              <>
                {at === 0 ? "" : " "}
                <A href={`/activity?show=everything&${new URLSearchParams({ stream })}`}>
                  All events of this link{at === 0 ? "" : `, as ${stream}`}
                </A>
              </>
            ))}
          </p>
        </Section>
      )}
    </ConsoleDocument>
  );
}

/** The newest events of several streams, the newest first. */
async function readNewest(view: View, streams: readonly string[], limit: number): Promise<readonly Recorded[]> {
  const events = await Promise.all(streams.map((stream) => newestEvents(view, { stream, limit })));
  return events
    .flat()
    .sort((one, other) => other.position - one.position)
    .slice(0, limit);
}

/** Counts the clicks of one link by quarter of an hour, and their visitors. `clicks` has the newest first. */
function summed(clicks: readonly Recorded[]) {
  const quarters: Quarters<SuspectedCounts> = new Map();
  const visitors = new Set<string>();
  // Counts the oldest first: if there are too many quarters, the one that was counted first is dropped.
  for (const { type, time, data } of clicks.toReversed()) {
    if (type !== "LinkClicked") continue;
    quarterAt(quarters, msOf(time), noClicks)[data.bot ? "bots" : "clicks"]++;
    if (!data.bot) visitors.add(JSON.stringify([data.ip && canonicalAddress(data.ip), data.user_agent]));
  }
  return { quarters, visitors: visitors.size };
}

/** The counts of `domain/short_code`. Undefined if it was never clicked, or is counted among others. */
function findRow(view: View<"clicks" | "suspected">, link: string) {
  const counted = view.state("clicks").links.get(link);
  if (counted === undefined) return undefined;
  const { clicks, bots, first, last } = counted;
  const suspected = view.state("suspected").links.get(link)?.suspected ?? 0;
  return { link, clicks, bots, first, last, suspected };
}

/** Erases the clicks of one address, for a visitor who asks for that and gives their address. */
function ForgetClicks({ view }: { readonly view: View }): VNode | null {
  return (
    <ConfirmedAction
      view={view}
      back="/links"
      action="/console/clicks/forget"
      label="Erase the clicks of an address"
      isDangerous
      says="Erases the address, user agent and query of its clicks, and the records of its wrong tokens; the counts stay. This cannot be undone. Data at networks, in chats and in backups of the key file is not erased. A large log takes a while."
    >
      <Field label="IP address" name="ip" required maxLength={45} pattern="[0-9a-fA-F.:]+" title="IPv4 or IPv6" />{" "}
      <button>Erase its clicks for ever</button>
    </ConfirmedAction>
  );
}
