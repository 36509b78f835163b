import type { Folded } from "../events/event-types-and-codec.ts";
import type { Projection } from "./projection.ts";
import { dropOldest, COUNTED_LINKS_MAX, type Recent } from "./drop-oldest-links.ts";
import { linkKey, linksOf } from "./link-keys-and-text-links.ts";
import {
  judgeRequest,
  noFetches,
  noteMessage,
  type Fetches,
  type Verdicts,
} from "./clicks-suspected-as-networks-own.ts";
import { DAY_CHARACTERS, msOf, toDay } from "./parse-log-times.ts";
import { addVisitor, estimateVisitors } from "./estimate-visitors.ts";

export interface VisitCounts {
  /** Clicks of visitors, including anonymous clicks and those suspected to be the network's own. */
  clicks: number;
  suspected: number;
  /** Clicks of visitors who asked not to be tracked. */
  anonymous: number;
  bots: number;
  /** HEAD requests and prefetches of a link: no visitor made them, and they do not count as bots' clicks. */
  probes: number;
  /**
   * Estimated number of different visitors, without suspected ones; each counts once a day. For the day {@link
   * Visits.today} the number stays 0, because the estimate is made once the day has ended.
   */
  visitors: number;
}

interface VisitedLink extends Recent {
  /** Clicks of the link on days that are no longer kept separately; null if there are none. */
  earlier: VisitCounts | null;
}

/** Clicks per UTC day on the links that messages hold, or that operators added. */
export interface Visits extends Fetches {
  /** Links by their names, as `linkKey` writes them. */
  links: Map<string, VisitedLink>;
  /** Clicks of each day, by the day (YYYY-MM-DD, UTC) and the link. */
  days: Map<string, Map<string, VisitCounts>>;
  /** Number of all entries in `days`: a day with clicks on three links has three. At most `LINK_DAYS_MAX`. */
  entries: number;
  /** Last day whose clicks are part of {@link VisitedLink.earlier}; empty if none are. */
  merged_to: string;
  /**
   * UTC day whose visitors `sketches` count. The salts of earlier days are deleted, so no visitor of those days can be
   * recognised.
   */
  today: string;
  /**
   * Sketches of each link's visitors of `today`: a short HyperLogLog text that estimates how many there are, and lists
   * none.
   */
  sketches: Map<string, string>;
}

/**
 * Maximum number of days of links kept separately, some 150 bytes each: 25 links that are clicked daily, for ten years.
 */
export const LINK_DAYS_MAX = 100_000;

/**
 * Clicks per day on links. Separate from {@link results}, which hold personal data: results are folded again whenever a
 * recipient is forgotten, so they must not listen to clicks, which are far more numerous.
 */
export const visits: Projection<Visits> = {
  name: "visits",
  version: 4,
  types: [
    "LinkClicked",
    "LinkAdded",
    "DirectMessageAttempted",
    "DirectMessageSent",
    "DirectMessageFailed",
    "DirectMessageInDoubt",
  ],
  initial: () => ({
    links: new Map(),
    days: new Map(),
    entries: 0,
    merged_to: "",
    today: "",
    sketches: new Map(),
    ...noFetches(),
  }),
  evolve(state, event) {
    evolveVisits(state, event);
    return state;
  },
};

function evolveVisits(state: Visits, event: Folded): void {
  switch (event.type) {
    case "LinkClicked":
      return click(state, event);
    case "LinkAdded": {
      const { domain, code, template } = event.data;
      // Once the map is full, links that an operator adds are left out, so that a large import of links does not
      // displace links that messages contain.
      if (template !== undefined || state.links.size < COUNTED_LINKS_MAX)
        meet(state, linkKey(domain, code), event.position);
      return;
    }
    case "DirectMessageAttempted": {
      for (const link of linksOf(event.data)) meet(state, link, event.position);
      return noteMessage(state, event, VERDICTS);
    }
    default:
      return noteMessage(state, event, VERDICTS);
  }
}

function meet({ links }: Visits, link: string, position: number): void {
  const known = links.get(link);
  if (known !== undefined) {
    known.last_position = position;
    return;
  }
  links.set(link, { last_position: position, earlier: null });
  dropOldest(links, () => {});
}

function click(state: Visits, { position, time, data }: Folded<"LinkClicked">): void {
  const { domain, short_code, bot, probe, anonymous, visitor } = data;
  const link = linkKey(domain, short_code);
  const known = state.links.get(link);
  if (known === undefined) return;
  known.last_position = position;
  const day = time.slice(0, DAY_CHARACTERS);
  if (day > state.today) beginDay(state, day);
  const counts = countsOn(state, day, link);
  if (probe !== undefined) counts.probes++;
  else if (bot) counts.bots++;
  else {
    counts.clicks++;
    if (anonymous === true) counts.anonymous++;
  }
  const isOfPerson = probe === undefined && !bot;
  // The objects are written out, because spread syntax would take as long as all other work for the click.
  const at = msOf(time);
  const found = visitor === undefined ? { name: link, at } : { name: link, at, visitor };
  judgeRequest(state, { link, bot: !isOfPerson, click: found }, VERDICTS);
}

const VERDICTS: Verdicts<Visits> = {
  onSuspected({ days }, { name, at }) {
    const counts = days.get(toDay(at))?.get(name);
    if (counts !== undefined) counts.suspected++;
  },
  onCleared({ sketches, today }, { name, at, visitor }) {
    if (visitor !== undefined && toDay(at) === today) sketches.set(name, addVisitor(sketches.get(name), visitor));
  },
};

/**
 * Stores for each link the estimated number of visitors of the day that ended. Then deletes the sketches, the data from
 * which these numbers are estimated, and begins the new day.
 */
function beginDay(state: Visits, day: string): void {
  for (const [link, counts] of state.days.get(state.today) ?? [])
    counts.visitors = countVisitors(state, state.today, link);
  state.sketches.clear();
  state.today = day;
}

/** Estimates the number of different visitors of a link on a day, each counted once. */
export function countVisitors({ days, today, sketches, bursts }: Visits, day: string, link: string): number {
  if (day !== today) return days.get(day)?.get(link)?.visitors ?? 0;
  const waiting = bursts.get(link)?.waiting;
  const sketch = sketches.get(link);
  // A click that waits to be judged counts as a visitor's until it is found to be suspected.
  const whole =
    waiting?.visitor === undefined || toDay(waiting.at) !== day ? sketch : addVisitor(sketch, waiting.visitor);
  return whole === undefined ? 0 : estimateVisitors(whole);
}

/** True if all clicks of visitors on a link that day are suspected to be the network's own. */
export function isSuspectedDay({ days }: Visits, day: string, link: string): boolean {
  const counts = days.get(day)?.get(link);
  return counts !== undefined && counts.suspected > 0 && counts.suspected >= counts.clicks;
}

function countsOn(state: Visits, day: string, link: string): VisitCounts {
  let links = state.days.get(day);
  if (links === undefined) state.days.set(day, (links = new Map()));
  const known = links.get(link);
  if (known !== undefined) return known;
  const counts = noVisits();
  links.set(link, counts);
  state.entries++;
  if (state.entries > LINK_DAYS_MAX) dropOldestDay(state, day);
  return counts;
}

/** Adds the clicks of the oldest day to those of the links, and drops the day. */
function dropOldestDay(state: Visits, today: string): void {
  for (const [day, links] of state.days) {
    if (day === today) continue;
    for (const [link, counts] of links) {
      const known = state.links.get(link);
      if (known !== undefined) known.earlier = addVisits(known.earlier ?? noVisits(), counts);
    }
    if (day > state.merged_to) state.merged_to = day;
    state.days.delete(day);
    state.entries -= links.size;
    return;
  }
}

export function noVisits(): VisitCounts {
  return { clicks: 0, suspected: 0, anonymous: 0, bots: 0, probes: 0, visitors: 0 };
}

/** Adds the counts of `more` to `counts`, and returns `counts`. */
export function addVisits(counts: VisitCounts, more: VisitCounts): VisitCounts {
  for (const kind of Object.keys(counts) as (keyof VisitCounts)[]) counts[kind] += more[kind];
  return counts;
}
