import { QUARTER_MS } from "../../projections/count-by-quarter-hour.ts";
import { noClicks, type Suspected, type SuspectedCounts } from "../../projections/clicks-suspected-as-networks-own.ts";

/** Clicks of one link within a span of time. */
export interface LinkTally extends SuspectedCounts {
  readonly link: string;
}

/** Unusually many clicks by bots on one link. */
export interface Burst {
  readonly link: string;
  /** Time of the first click, in ms since 1970. */
  readonly first: number;
  /** Time of the last click, in ms since 1970. */
  last: number;
  bots: number;
  /**
   * Starts of the quarters of an hour, in ms since 1970, in which the projection has counted the clicks of this burst.
   */
  readonly quarters: number[];
}

/** Clicks of all links within a span of time. */
export interface ClickTally {
  readonly first: number;
  last: number;
  readonly links: Map<string, LinkTally>;
  /** Counts of the clicks on links that the projection does not count one by one. */
  readonly others: SuspectedCounts;
}

/** Minimum number of clicks by bots within a quarter of an hour that count as a burst. */
const BURST_CLICKS_MIN = 100;

/** A burst has at least this many times the usual number of the link's clicks by bots. */
const BURST_FACTOR = 10;

/** Finds the bursts of clicks by bots, link by link, in the quarters of an hour that the projection keeps. */
export function findBursts({ recent }: Suspected): readonly Burst[] {
  const byLink = new Map<string, { quarter: number; bots: number; first: number; last: number }[]>();
  for (const [quarter, { links }] of recent) {
    for (const [link, { bots, bots_first: first, bots_last: last }] of links) {
      if (bots > 0) byLink.getOrInsertComputed(link, () => []).push({ quarter, bots, first, last });
    }
  }
  const starts = [...recent.keys()];
  const kept = starts.length === 0 ? 0 : (Math.max(...starts) - Math.min(...starts)) / QUARTER_MS + 1;
  const bursts: Burst[] = [];
  for (const [link, quarters] of byLink) {
    const all = quarters.reduce((sum, { bots }) => sum + bots, 0);
    let open: Burst | undefined;
    for (const [at, { quarter, bots, first, last }] of quarters.entries()) {
      const [before, after] = [quarters[at - 1], quarters[at + 1]];
      const most = Math.max(
        bots,
        before !== undefined && last - before.first <= QUARTER_MS ? before.bots + bots : 0,
        after !== undefined && after.last - first <= QUARTER_MS ? after.bots + bots : 0,
      );
      const usual = kept <= 1 ? 0 : (all - most) / (kept - 1);
      if (most < BURST_CLICKS_MIN || most < BURST_FACTOR * usual) {
        open = undefined;
        continue;
      }
      if (open === undefined) bursts.push((open = { link, first, last, bots: 0, quarters: [] }));
      open.bots += bots;
      open.last = last;
      open.quarters.push(quarter);
    }
  }
  return bursts;
}

/**
 * Counts the clicks of a day in windows of `windowMs`, except clicks by bots that belong to a burst. `start`: beginning
 * of the day.
 */
export function tallyClicks(
  { recent }: Suspected,
  { start, end }: { readonly start: number; readonly end: number },
  windowMs: number,
  bursts: readonly Burst[],
): ReadonlyMap<number, ClickTally> {
  const taken = new Set(bursts.flatMap(({ link, quarters }) => quarters.map((quarter) => `${quarter} ${link}`)));
  const windows = new Map<number, ClickTally>();
  for (const [quarter, { first, last, links, others }] of recent) {
    if (quarter < start || quarter >= end) continue;
    const window = Math.floor((quarter - start) / windowMs);
    const tally = windows.getOrInsertComputed(window, () => ({ first, last, links: new Map(), others: noClicks() }));
    tally.last = last;
    addClicks(tally.others, others);
    for (const [link, counts] of links) {
      const { clicks, suspected } = counts;
      const bots = taken.has(`${quarter} ${link}`) ? 0 : counts.bots;
      if (clicks + bots === 0) continue;
      addClicks(
        tally.links.getOrInsertComputed(link, () => ({ link, ...noClicks() })),
        { clicks, bots, suspected },
      );
    }
  }
  return windows;
}

/** Adds counts of clicks to a sum. */
export function addClicks(sum: SuspectedCounts, { clicks, bots, suspected }: SuspectedCounts): void {
  sum.clicks += clicks;
  sum.bots += bots;
  sum.suspected += suspected;
}
