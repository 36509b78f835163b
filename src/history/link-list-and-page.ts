import type { Recorded } from "../../events/event-types-and-codec.ts";
import { ERASED } from "../../events/declare-personal-members.ts";
import { findContact } from "../../projections/contact-identity.ts";
import { quarterAt, type Quarters } from "../../projections/count-by-quarter-hour.ts";
import { COUNTED_LINKS_MAX } from "../../projections/drop-oldest-links.ts";
import type { Referrers } from "../../projections/messages-by-link.ts";
import { formatTemplate, type Results } from "../../projections/message-outcomes-and-reactions.ts";
import { linkKey } from "../../projections/link-keys-and-text-links.ts";
import { noClicks, type SuspectedCounts } from "../../projections/clicks-suspected-as-networks-own.ts";
import { msOf } from "../../projections/parse-log-times.ts";
import { eventsAt } from "../log/event-log.ts";
import { grouped } from "../platform/format-numbers-and-lists.ts";
import { canonicalAddress } from "../platform/ip-address.ts";
import { createSortedPage, toSortValue, type ListPage } from "../platform/sorted-page.ts";
import { newestEvents, type PageMoment } from "../projector/moment-of-console-page.ts";
import { startOfPeriods, type ClickQuarters, type PeriodsChoice } from "./chart-figures.ts";
import { addClicks } from "./tally-clicks-and-bot-bursts.ts";
import { streamsOfLink } from "./history-of-recipient-link-or-event.ts";
import { addConversions, formatValues, noWorth, toWorthFigures } from "./results-figures.ts";
import { isErased } from "./event-sentences.ts";
import { join, other, say, type Sentence } from "./sentences/sentence-parts.ts";

/** The columns that a list of links is sorted by. */
export const LINK_LIST_COLUMNS = ["link", "people", "suspected", "bots", "last"] as const;
type LinkColumn = (typeof LINK_LIST_COLUMNS)[number];

/**
 * Lists the links that were clicked, sorted, and sums up the clicks of all links. `recent`: counts to list in place of
 * those since the beginning, as {@link countRecentClicks} returns them.
 */
export function readLinkList(
  moment: PageMoment<"clicks" | "suspected">,
  page: ListPage<LinkColumn>,
  recent?: RecentCounts,
) {
  const { all, others, quarters, links } = moment.state("suspected");
  const sorted = createSortedPage(page);
  for (const [link, { last_position: last }] of moment.state("clicks").links) {
    if (recent !== undefined && !recent.has(link)) continue;
    const { clicks = 0, suspected = 0, bots = 0 } = (recent ?? links).get(link) ?? {};
    const values = { people: clicks - suspected, suspected, bots, last };
    const { by } = page.sort;
    sorted.add(by === "link" ? link : toSortValue(values[by]), link);
  }
  const { keys, next } = sorted.end();
  return {
    links: keys.flatMap((link) => countClicks(moment, link, recent) ?? []),
    next,
    all: { people: all.clicks - all.suspected, suspected: all.suspected, bots: all.bots },
    /** Clicks on links that the projection no longer counts one by one. */
    others: { people: others.clicks, bots: others.bots },
    /** Maximum number of links that the projection counts one by one. */
    countedMax: COUNTED_LINKS_MAX,
    quarters,
  };
}

/** Counts of clicks by link. Links without any are absent. */
type RecentCounts = ReadonlyMap<string, SuspectedCounts>;

/**
 * Counts the clicks of each link in the periods of a chart. Undefined if the projection no longer keeps the clicks of
 * these periods by link, or did not count each link separately.
 */
export function countRecentClicks(moment: PageMoment<"suspected">, choice: PeriodsChoice): RecentCounts | undefined {
  const { recent, quarters } = moment.state("suspected");
  const start = startOfPeriods(choice);
  // True if the chosen periods contain a quarter-hour with clicks for which the projection no longer has counts by
  // link, but only the sum of all links.
  const isDropped = [...quarters.keys()].some((at) => at >= start && at <= choice.until && !recent.has(at));
  if (choice.isFitted || isDropped) return undefined;
  const sums = new Map<string, SuspectedCounts>();
  for (const [quarter, { links, others }] of recent) {
    if (quarter < start || quarter > choice.until) continue;
    if (others.clicks + others.bots > 0) return undefined;
    for (const [link, counts] of links) addClicks(sums.getOrInsertComputed(link, noClicks), counts);
  }
  return sums;
}

/**
 * Returns the counts of a link (`domain/short_code`), those in `recent` if given. Undefined if it has no clicks, or if
 * its clicks are now counted with those of other links.
 */
function countClicks(moment: PageMoment<"clicks" | "suspected">, link: string, recent?: RecentCounts) {
  const counted = moment.state("clicks").links.get(link);
  if (counted === undefined) return undefined;
  const { clicks, bots } = recent?.get(link) ?? counted;
  const { suspected = 0 } = (recent ?? moment.state("suspected").links).get(link) ?? {};
  return { link, people: clicks - suspected, suspected, bots, first: counted.first, last: counted.last };
}

/** Sums the conversions of each link (`domain/short_code`), with their value in words. Links without any are absent. */
export function readConversions(moment: PageMoment<"conversions">) {
  const links = new Map<string, ReturnType<typeof noWorth>>();
  for (const counts of moment.state("conversions").counts.values())
    if (counts.link !== "") addConversions(links.getOrInsertComputed(counts.link, noWorth), counts);
  const sums = [...links].map(([link, worth]) => {
    const { total, reversed, values } = toWorthFigures(worth, 0).conversions;
    return [link, { total, reversed, value: formatValues(values, "value") ?? "none" }] as const;
  });
  return new Map(sums);
}

/**
 * Maximum number of clicks of a link that are read, beginning with the newest. Without it, a page would take longer and
 * longer.
 */
const CLICKS_READ_MAX = 5_000;

/** Maximum number of clicks of a link that are listed one by one. */
const CLICKS_SHOWN = 20;

/** Reads the page of one link: its newest clicks, and counts of clicks over time. */
export async function readLinkPage(moment: PageMoment<"clicks" | "suspected">, domain: string, shortCode: string) {
  const link = linkKey(domain, shortCode);
  const streams = streamsOfLink(moment.state("clicks"), link);
  const clicks = await readNewest(moment, streams, CLICKS_READ_MAX + 1);
  return {
    link,
    /** Streams of the link's clicks, one for each spelling that older versions stored. */
    streams,
    counts: countClicks(moment, link),
    newest: clicks.slice(0, CLICKS_SHOWN),
    /**
     * Number of clicks among which `visitors` and `quarters` are counted, if the link has more than are read; undefined
     * if all are read.
     */
    readMax: clicks.length > CLICKS_READ_MAX ? CLICKS_READ_MAX : undefined,
    ...sumUp(clicks.slice(0, CLICKS_READ_MAX), moment.state("suspected").links.get(link)?.suspected_at),
  };
}

/** Reads the newest events of several streams together, newest first. */
async function readNewest(moment: PageMoment, streams: readonly string[], limit: number): Promise<readonly Recorded[]> {
  const events = await Promise.all(streams.map((stream) => newestEvents(moment, { stream, limit })));
  return events
    .flat()
    .sort((one, other) => other.position - one.position)
    .slice(0, limit);
}

/**
 * Counts the clicks of one link by quarter of an hour, and its visitors. `clicks`: the events, newest first.
 * `suspectedAt`: how many of the link's clicks were suspected in each quarter of an hour.
 */
function sumUp(clicks: readonly Recorded[], suspectedAt: Quarters<{ readonly suspected: number }> = new Map()) {
  const quarters: ClickQuarters = new Map();
  const visitors = new Set<string>();
  // The loop begins with the oldest click, because with too many quarters of an hour the ones added first are dropped.
  for (const { type, time, data } of clicks.toReversed()) {
    if (type !== "LinkClicked") continue;
    quarterAt(quarters, msOf(time), noClicks)[data.bot ? "bots" : "clicks"]++;
    if (!data.bot) visitors.add(JSON.stringify([data.ip && canonicalAddress(data.ip), data.user_agent]));
  }
  // If the oldest quarter of an hour was read only in part, more of its clicks may be suspected than were read, so the
  // number is capped.
  for (const [start, counts] of quarters)
    counts.suspected = Math.min(counts.clicks, suspectedAt.get(start)?.suspected ?? 0);
  return { quarters, visitors: visitors.size };
}

/**
 * Reads the newest messages that contain a link, from which its clicks may come. Undefined if no message contains it.
 */
export async function readSentTo(moment: PageMoment<"contacts" | "referrers" | "results">, link: string) {
  const known = moment.state("referrers").links.get(link);
  const replaced = countSent(moment.state("results"), link) - (known?.messages ?? 0);
  if (known === undefined && replaced <= 0) return undefined;
  const { newest, messages, variants } = known ?? { newest: [], messages: 0, variants: [] };
  const events = await Array.fromAsync(eventsAt(moment.store, newest));
  const attempts = events.filter((event) => event.type === "DirectMessageAttempted");
  const [only] = attempts;
  const contact = only && findContact(moment.state("contacts"), only.data.recipient);
  return {
    summary: messages === 0 ? undefined : summarize(moment, { messages, variants }),
    /** Number of messages with a link of the recipient's own in place of this one. */
    replaced: Math.max(0, replaced),
    messages,
    /**
     * True if the link was sent to one recipient only, who does not permit tracking. Their name next to the clicks
     * would tell what they clicked.
     */
    isHidden: messages === 1 && contact?.tracking.status !== "granted",
    /** Messages that contain the link, the newest first. */
    sent: attempts.toReversed().map(({ time, data: { recipient, variant } }) => {
      return { time, recipient, name: isErased(recipient) ? ERASED : `@${recipient.username}`, variant };
    }),
  };
}

/** Counts the messages that the network accepted with a link, or with a link of the recipient's own in its place. */
function countSent({ links, messages }: Results, link: string): number {
  const number = links.get(link);
  if (number === undefined) return 0;
  let count = 0;
  for (const message of messages.values()) if (message.outcome === "sent" && message.links.includes(number)) count++;
  return count;
}

/**
 * Describes the messages that contain a link, such as `In 3 messages: 2 of variant A of Autumn invite, 1 of variant B.`
 */
function summarize(
  moment: PageMoment<"results">,
  { messages, variants }: Omit<Referrers, "newest" | "last_position">,
): Sentence {
  const counted = variants.map(({ template, variant, messages: count }) => {
    const name = template === "" ? [] : say` of ${other(formatTemplate(moment.state("results"), template))}`;
    return say`${grouped(count)} of variant ${other(variant)}${name}`;
  });
  return say`In ${messages === 1 ? "one message" : `${grouped(messages)} messages`}: ${join(counted, ", ")}.`;
}
