import { readFileSync } from "node:fs";
import type { EventStore } from "eventstore-lite";
import type { VNode } from "preact";
import { EVENT_TYPES, type Event, type EventType, type Recorded } from "../../events/catalog.ts";
import type { ChannelName } from "../../events/channel.ts";
import type { Basis } from "../../events/outreach.ts";
import { periodsOf, type PeriodsQuery } from "../../projections/periods.ts";
import { quarterAt, type Quarters } from "../../projections/quarters.ts";
import { byLastClick } from "../../projections/recent-links.ts";
import type { Stats } from "../../projections/stats.ts";
import type { SuspectedCounts } from "../../projections/suspected.ts";
import { msOf } from "../../projections/time.ts";
import { STREAMS } from "../log/event-log.ts";
import { isoTime, type Clock } from "../platform/clock.ts";
import type { Projector } from "../projector/projector.ts";
import { auditPage, eventPage, type AuditFilter } from "./audit.tsx";
import { renderPage, type Shown } from "./document.tsx";
import { linkPage, LINKS_SHOWN, linksPage, type LinkRow } from "./links.tsx";
import { overviewPage } from "./overview.tsx";
import { isFound, PEOPLE_SHOWN, peoplePage, PERSON_STATUSES, type PeopleFilter } from "./people.tsx";
import { variantsPage } from "./variants.tsx";

export interface ConsoleSources {
  readonly store: EventStore<Event>;
  readonly projector: Projector;
  readonly quota: { readonly limit: number; readonly used: () => number; readonly resetsAt: () => number };
  readonly configured: readonly ChannelName[];
  readonly timezone: string;
  readonly clock: Clock;
}

/** The pages of the console, each made of projections and of what the log holds. `query` is that of the page's address. */
export interface Console {
  overview(): Promise<string>;
  people(query: URLSearchParams): string;
  links(query: URLSearchParams): Promise<string>;
  variants(): string;
  /** Undefined: there is no event at the position asked for. */
  audit(query: URLSearchParams): Promise<string | undefined>;
}

const NEWEST_SHOWN = 20;
const EVENTS_SHOWN = 100;
const DAYS_SHOWN = 30;
const HOURS_SHOWN = 48;

/** Newest clicks of a link that its page is made of: a page must not take as long as the link is old. */
const LINK_CLICKS_READ_MAX = 5_000;

export function createConsole(sources: ConsoleSources): Console {
  return {
    overview: async () => renderPage(await overview(sources)),
    people: (query) => renderPage(people(sources, query)),
    links: async (query) => {
      const link = query.get("link");
      return renderPage(link === null ? links(sources, query) : await oneLink(sources, link));
    },
    variants: () =>
      renderPage(variantsPage({ shown: shown(sources), groups: sources.projector.state("variants").groups })),
    audit: async (query) => {
      const position = numberOf(query, "position");
      const page = position === undefined ? await audit(sources, query) : await oneEvent(sources, position);
      return page === undefined ? undefined : renderPage(page);
    },
  };
}

async function overview(sources: ConsoleSources): Promise<VNode> {
  const { store, projector, quota, configured, timezone } = sources;
  const run = projector.state("run");
  return overviewPage({
    shown: shown(sources),
    stats: projector.state("stats"),
    account: projector.state("account"),
    run: run.current,
    quota: { limit: quota.limit, used: quota.used(), resetsAt: isoTime(quota.resetsAt()) },
    inDoubt: [...run.open.values()].filter((attempt) => attempt.in_doubt).length,
    deliveries: projector.state("deliveries"),
    configured,
    days: periodsOf(projector.state("timeline").quarters, last(sources, "day", DAYS_SHOWN), noMessages),
    hours: periodsOf(projector.state("suspected").quarters, last(sources, "hour", HOURS_SHOWN), noClicks),
    timezone,
    events: await newest(store, { limit: NEWEST_SHOWN }),
  });
}

function people(sources: ConsoleSources, query: URLSearchParams): VNode {
  const filter = peopleFilterOf(query);
  const skip = numberOf(query, "skip") ?? 0;
  const known = sources.projector.state("contacts").people;
  const found = [...known.values()].filter((contact) => isFound(contact, filter));
  return peoplePage({
    shown: shown(sources),
    filter,
    people: found.slice(skip, skip + PEOPLE_SHOWN),
    found: found.length,
    known: known.size,
    next: skip + PEOPLE_SHOWN < found.length ? skip + PEOPLE_SHOWN : undefined,
  });
}

function links(sources: ConsoleSources, query: URLSearchParams): VNode {
  const skipped = numberOf(query, "skip") ?? 0;
  const { all, others, quarters } = sources.projector.state("suspected");
  const names = byLastClick(sources.projector.state("clicks").links).map(([name]) => name);
  return linksPage({
    shown: shown(sources),
    all,
    others,
    days: periodsOf(quarters, last(sources, "day", DAYS_SHOWN), noClicks),
    timezone: sources.timezone,
    links: names.slice(skipped, skipped + LINKS_SHOWN).flatMap((name) => rowOf(sources, name) ?? []),
    skipped,
    next: skipped + LINKS_SHOWN < names.length ? skipped + LINKS_SHOWN : undefined,
  });
}

async function oneLink(sources: ConsoleSources, link: string): Promise<VNode> {
  const slash = link.indexOf("/");
  const stream = STREAMS.link(link.slice(0, slash), link.slice(slash + 1));
  const clicks = await newest(sources.store, { stream, limit: LINK_CLICKS_READ_MAX + 1 });
  const quarters: Quarters<SuspectedCounts> = new Map();
  const visitors = new Set<string>();
  // The oldest first: of quarters, the one counted first is the first to go.
  for (const { type, time, data } of clicks.slice(0, LINK_CLICKS_READ_MAX).toReversed()) {
    if (type !== "LinkClicked") continue;
    quarterAt(quarters, msOf(time), noClicks)[data.bot ? "bots" : "clicks"]++;
    if (!data.bot) visitors.add(JSON.stringify([data.ip, data.user_agent]));
  }
  return linkPage({
    shown: shown(sources),
    row: rowOf(sources, link),
    link,
    stream,
    visitors: visitors.size,
    read: Math.min(clicks.length, LINK_CLICKS_READ_MAX),
    isWhole: clicks.length <= LINK_CLICKS_READ_MAX,
    days: periodsOf(quarters, last(sources, "day", DAYS_SHOWN), noClicks),
    timezone: sources.timezone,
  });
}

/** Undefined: it was never clicked, or is counted among others. */
function rowOf({ projector }: ConsoleSources, link: string): LinkRow | undefined {
  const counted = projector.state("clicks").links.get(link);
  if (counted === undefined) return undefined;
  const { clicks, bots, first, last: lastClick } = counted;
  const suspected = projector.state("suspected").links.get(link)?.suspected ?? 0;
  return { link, clicks, bots, first, last: lastClick, suspected };
}

async function audit(sources: ConsoleSources, query: URLSearchParams): Promise<VNode> {
  const filter = auditFilterOf(query);
  const events = await newest(sources.store, {
    limit: EVENTS_SHOWN + 1,
    ...(filter.type === undefined ? {} : { types: [filter.type] }),
    ...(filter.stream === undefined ? {} : { stream: filter.stream }),
    ...(filter.before === undefined ? {} : { to: filter.before - 1 }),
  });
  return auditPage({
    shown: shown(sources),
    filter,
    types: EVENT_TYPES,
    events: events.slice(0, EVENTS_SHOWN),
    hasOlder: events.length > EVENTS_SHOWN,
  });
}

async function oneEvent(sources: ConsoleSources, position: number): Promise<VNode | undefined> {
  const [event] = await newest(sources.store, { from: position, to: position, limit: 1 });
  if (event === undefined) return undefined;
  return eventPage({ shown: shown(sources), event, previousHash: (await sources.store.hashAt(position - 1)) ?? "" });
}

function shown({ projector }: ConsoleSources): Shown {
  return { position: projector.position, time: projector.time };
}

/** The newest hours or days. */
function last({ clock, timezone }: ConsoleSources, unit: "day" | "hour", count: number): PeriodsQuery {
  return { unit, count, until: clock(), timezone };
}

/** Newest first. */
async function newest(
  store: EventStore<Event>,
  query: Omit<Parameters<EventStore<Event>["read"]>[0] & object, "backwards">,
): Promise<readonly Recorded[]> {
  const events: Recorded[] = [];
  for await (const event of store.read({ ...query, backwards: true })) events.push(event);
  return events;
}

const noMessages = (): Stats => ({ sent: 0, skipped: 0, failed: 0 });
const noClicks = (): SuspectedCounts => ({ clicks: 0, bots: 0, suspected: 0 });

/** A whole number that is not negative; undefined for anything else. */
function numberOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name) ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Undefined for what is not filled in. */
function textOf(query: URLSearchParams, name: string): string | undefined {
  const text = query.get(name)?.trim() ?? "";
  return text === "" ? undefined : text;
}

function auditFilterOf(query: URLSearchParams): AuditFilter & { readonly type?: EventType } {
  const type = EVENT_TYPES.find((known) => known === query.get("type"));
  const stream = textOf(query, "stream");
  const before = numberOf(query, "before");
  return {
    ...(type === undefined ? {} : { type }),
    ...(stream === undefined ? {} : { stream }),
    ...(before === undefined ? {} : { before }),
  };
}

const BASES: readonly Basis[] = ["dm_first", "opt_in", "none"];

function peopleFilterOf(query: URLSearchParams): PeopleFilter {
  const search = textOf(query, "search");
  const status = PERSON_STATUSES.find((known) => known === query.get("status"));
  const basis = BASES.find((known) => known === query.get("basis"));
  return {
    ...(search === undefined ? {} : { search }),
    ...(status === undefined ? {} : { status }),
    ...(basis === undefined ? {} : { basis }),
  };
}

export interface Asset {
  /** Media type of its text, which is UTF-8. */
  readonly type: string;
  readonly body: string;
}

/** What the pages load; all of it comes from here. */
export const ASSETS: Readonly<Record<"/console.css" | "/console.js" | "/idiomorph.js", Asset>> = {
  "/console.css": { type: "text/css", body: ownFile("console.css") },
  "/console.js": { type: "text/javascript", body: ownFile("console.js") },
  "/idiomorph.js": {
    type: "text/javascript",
    body: readFileSync(new URL(import.meta.resolve("idiomorph/dist/idiomorph.esm.js")), "utf8"),
  },
};

function ownFile(name: string): string {
  return readFileSync(new URL(name, import.meta.url), "utf8");
}
