/** @jsxImportSource preact */
import type { VNode } from "preact";
import {
  LINK_LIST_COLUMNS,
  countRecentClicks,
  readConversions,
  readLinkList,
  readLinkPage,
  readSentTo,
} from "../../history/link-list-and-page.ts";
import { countInWords, grouped } from "../../platform/format-numbers-and-lists.ts";
import {
  BestHour,
  ClicksChart,
  RangePicker,
  readPeriods,
  readRangeFields,
} from "../parts/clicks-chart-and-range-picker.tsx";
import { ConsoleDocument, Head, Section } from "../document.tsx";
import { EventList, RecipientLink, Words } from "../parts/event-sentence.tsx";
import { ConfirmedAction, Field } from "../parts/action-form.tsx";
import { Time } from "../parts/time.tsx";
import { addressWith, hrefForLink } from "../hrefs.ts";
import { readListPage, readSort } from "../read-sort-from-address.ts";
import { consolePage, type View } from "../page-context.ts";
import { breakable, createSortedHeads, ListPages, numbers, Table } from "../parts/table.tsx";
import { A } from "../parts/links-forms-and-tabs.tsx";

/** Number of rows on one page of a list. */
const LINKS_SHOWN = 100;

/** Page that lists all clicked links, with clicks by people, suspected clicks of X itself, and clicks by bots. */
export const linksPage = consolePage({ reads: ["account", "clicks", "conversions", "suspected"], render: renderLinks });

function renderLinks(view: View<"account" | "clicks" | "conversions" | "suspected">): VNode {
  const recent = countRecentClicks(view, readPeriods(view, "day"));
  const sort = readSort(view, LINK_LIST_COLUMNS, { by: "people", order: "descending" });
  const list = readLinkList(view, readListPage(view, sort, LINKS_SHOWN), recent);
  const { links, next, all, others, countedMax, quarters } = list;
  const conversions = readConversions(view);
  const head = createSortedHeads(view, "/links", sort);
  const columns = [
    head("link", "link", "ascending", "breakable"),
    head("people", "people", "descending", "number"),
    head("suspected", "suspected", "descending", "number"),
    head("bots", "bots", "descending", "number"),
    ...(conversions.size === 0 ? [] : [...numbers("conversions"), "value"]),
    head("last click", "last", "descending", "state"),
  ];
  return (
    <ConsoleDocument title="Links" path="/links" view={view}>
      <Head
        title="Links"
        says={`${countInWords(all.people, "click")} by people, ${grouped(all.suspected)} suspected to be X itself, ${grouped(all.bots)} by bots.`}
      />
      <RangePicker view={view} path="/links" />
      <ClicksChart view={view} unit="day" quarters={quarters} />
      {links.length === 0 ? (
        <p class="empty">
          No clicks yet. Have your link shortener post each click to <code>/api/tracking/event</code>.
        </p>
      ) : (
        <>
          <p class="quiet">
            {recent === undefined
              ? "The table counts all clicks since the beginning; the range is that of the chart."
              : "The table counts the clicks of the chart's range."}{" "}
            <A href="/results">Results</A> counts the clicks on links of messages.
          </p>
          <Table
            label="Links"
            columns={columns}
            rows={links.map(({ link, people, suspected, bots, last }) => [
              <A href={addressWith(hrefForLink(link), new URLSearchParams(), readRangeFields(view))}>
                <bdi>{link}</bdi>
              </A>,
              people,
              suspected,
              bots,
              ...(conversions.size === 0 ? [] : [conversions.get(link)?.total ?? 0, conversions.get(link)?.value]),
              <Time at={last} />,
            ])}
            isTall
          />
        </>
      )}
      {others.people + others.bots === 0 ? null : (
        <p>
          {grouped(others.people)} more clicks by people and {grouped(others.bots)} by bots are of links that were not
          clicked for long: {grouped(countedMax)} links are counted one by one.
        </p>
      )}
      <ListPages path="/links" rows="links" next={next} />
      <ForgetClicks />
    </ConsoleDocument>
  );
}

/** Page of one link: its clicks over time, its visitors, and the recipients of messages with it. */
export const linkPage = consolePage({
  reads: ["account", "clicks", "contacts", "conversions", "referrers", "results", "runs", "suspected"],
  render: renderLink,
});

async function renderLink(
  view: View<"account" | "clicks" | "contacts" | "conversions" | "referrers" | "results" | "runs" | "suspected">,
): Promise<VNode> {
  const { domain = "", short_code = "" } = view.parameters;
  const { link, streams, counts, newest, readMax, visitors, quarters } = await readLinkPage(view, domain, short_code);
  const converted = readConversions(view).get(link);
  return (
    <ConsoleDocument title={link} path="/links" view={view}>
      <Head
        title={<bdi>{link}</bdi>}
        says={
          counts === undefined ? (
            newest.length === 0 ? (
              "This link has no clicks yet."
            ) : (
              "Its clicks are old, and counted together with those of other links."
            )
          ) : (
            <>
              {countInWords(counts.people, "click")} by people, {grouped(counts.suspected)} suspected,{" "}
              {grouped(counts.bots)} by bots; first <Time at={counts.first} />, last <Time at={counts.last} />.
            </>
          )
        }
      />
      {converted === undefined ? null : (
        <p>
          {countInWords(converted.total, "conversion")}, {grouped(converted.reversed)} reversed; value {converted.value}
          .
        </p>
      )}
      {newest.length === 0 ? null : (
        <>
          <p>
            {countInWords(visitors, "different visitor")} (address and user agent)
            {readMax === undefined ? "" : ` among the newest ${grouped(readMax)} clicks`}.
          </p>
          <RangePicker view={view} path={hrefForLink(link)} />
          <ClicksChart view={view} unit="day" quarters={quarters} isOfLink />
          <BestHour view={view} unit="day" quarters={quarters} />
          {readMax === undefined ? null : (
            <p class="quiet">The chart counts the newest {grouped(readMax)} clicks, those by bots included.</p>
          )}
        </>
      )}
      {await renderSentTo(view, link)}
      {newest.length === 0 ? null : (
        <Section id="newest" title={converted === undefined ? "Newest clicks" : "Newest clicks and conversions"}>
          <EventList view={view} events={newest} />
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

/**
 * Shows which messages contained a link, and who received them, because the link's clicks may come from these
 * recipients.
 */
async function renderSentTo(view: View<"contacts" | "referrers" | "results" | "runs">, link: string): Promise<VNode> {
  const found = await readSentTo(view, link);
  return (
    <Section id="sent-to" title="Sent to">
      {found === undefined ? (
        <p class="empty">No message contained it.</p>
      ) : (
        <>
          {found.summary === undefined ? null : (
            <p>
              <Words view={view} sentence={found.summary} />
            </p>
          )}
          {found.replaced === 0 ? null : (
            <p>
              In {countInWords(found.replaced, found.messages === 0 ? "message" : "more message")} to recipients who
              granted tracking, a link of their own took its place. Clicks on those links count here too.
            </p>
          )}
          {found.messages === 0 ? null : <Recipients found={found} />}
        </>
      )}
    </Section>
  );
}

function Recipients({ found }: { readonly found: NonNullable<Awaited<ReturnType<typeof readSentTo>>> }): VNode {
  const { sent, messages, isHidden } = found;
  if (isHidden) return <p>Its recipient did not grant tracking, so they are not named beside the clicks.</p>;
  return (
    <>
      {sent.length < messages ? <p>The newest {grouped(sent.length)}:</p> : null}
      <Table
        label="People it was sent to"
        columns={[...breakable("person", "variant"), "when"]}
        rows={sent.map(({ time, recipient, name, variant }) => [
          <RecipientLink recipient={recipient} name={name} />,
          <bdi>{variant}</bdi>,
          <Time at={time} />,
        ])}
      />
    </>
  );
}

/** Form that erases the clicks from one IP address, when a visitor asks for it and states the address. */
function ForgetClicks(): VNode {
  return (
    <ConfirmedAction
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
