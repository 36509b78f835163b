import { Type, type Static } from "@sinclair/typebox";
import { basis, recipientSource } from "../../events/outreach.ts";
import type { States } from "../../projections/all.ts";
import type { Message, Results } from "../../projections/results.ts";
import { addVisits, noVisits, countVisitors, type VisitCounts, type Visits } from "../../projections/visits.ts";
import { DAY_CHARACTERS, DAY_MS, toDay } from "../../projections/time.ts";
import { count, named, orNull, text } from "../platform/common-schemas.ts";
import { ServiceError } from "../platform/service-error.ts";
import { inTimeSlices } from "../platform/time-slices.ts";
import { wilsonInterval } from "../platform/rate-statistics.ts";
import { parseMoment } from "../projector/parse-moment.ts";

/** The properties by which results can be grouped. */
export const GROUPINGS = ["template", "variant", "run", "day", "source", "basis", "link"] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** Most rows of an answer, the newest: one run a day for nearly three years. */
export const RESULT_ROWS_MAX = 1_000;

/**
 * Whole UTC days, because visitors are told apart within one day: from the start of `from` to the start of `to`, in ms
 * since 1970.
 */
export interface Interval {
  /** Undefined begins at the first event. */
  readonly from: number | undefined;
  /** Undefined ends at the last event. */
  readonly to: number | undefined;
}

/** Parses an interval. `now`, in ms since 1970, is the end if only `from` is given. Throws a ServiceError (usage). */
export function parseInterval(from: string | undefined, to: string | undefined, now: number): Interval {
  const first = from === undefined ? undefined : startOfDay(from);
  const last = to === undefined ? undefined : startOfDay(to);
  const end = last ?? (first === undefined ? undefined : Math.max(first, now - (now % DAY_MS)));
  if (first !== undefined && end !== undefined && end < first)
    throw new ServiceError("usage", "the interval ends before it begins");
  return { from: first, to: end === undefined ? undefined : end + DAY_MS };
}

function startOfDay(text: string): number {
  const { until } = parseMoment(text, "UTC");
  if (until === undefined) throw new ServiceError("usage", `an interval is between days or times, not positions`);
  return until.getTime() - (((until.getTime() % DAY_MS) + DAY_MS) % DAY_MS);
}

/** Returns the preceding interval of the same length; undefined if this one begins with the log. */
function precedingInterval({ from, to }: Interval): Interval | undefined {
  return from === undefined || to === undefined ? undefined : { from: from - (to - from), to: from };
}

const share = Type.Number({ minimum: 0, maximum: 1, examples: [0.184] });

/** The true rate lies between `low` and `high` (95 %, Wilson). */
const resultRate = named("ResultRate", Type.Object({ rate: share, low: share, high: share }));
export type ResultRate = Static<typeof resultRate>;

/** `attempted` includes messages without an outcome. Replies and opt-outs count each recipient once. */
const messages = { attempted: count, sent: count, failed: count, in_doubt: count, replied: count, opted_out: count };

/** `total`: clicks that are not suspected. `unique`: visitors by {@link countVisitors}, each once per link and day. */
const clicks = { total: count, unique: count, suspected: count, anonymous: count, bots: count, probes: count };

/** Figures of recipients who granted tracking and whose message was sent; `clicked` is how many of them clicked. */
const tracked = { recipients: count, clicked: count, clicks: count, suspected: count };

/** Schemas of the figures as the API returns them. */
export const resultFigures = Type.Object({
  ...messages,
  /** Share of sent messages with a reply; null if none was sent. */
  reply_rate: orNull(resultRate),
  /** Null if no link belongs to this group alone. */
  clicks: orNull(named("LinkClicks", Type.Object(clicks))),
  /** `first_click_ms`: median time from the message to the first click, of recipients who clicked; null if none did. */
  tracked: named("TrackedClicks", Type.Object({ ...tracked, first_click_ms: orNull(count) })),
  /** Share of the recipients who granted tracking that clicked. */
  click_rate: orNull(resultRate),
});
export type Figures = Static<typeof resultFigures>;

/** Properties that all messages or clicks of a row share. Null if older messages do not record it. */
export const resultGroup = Type.Partial(
  Type.Object({
    template: orNull(text("0123456789ab")),
    /** The operator's last name for it; null if it has none. */
    template_name: orNull(text("Autumn invite")),
    variant: text("A"),
    run_id: text("01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11"),
    /** UTC. */
    day: text("2026-11-20"),
    source: orNull(recipientSource),
    basis: orNull(basis),
    link: text("go.example/autumn"),
  }),
);
export type ResultGroup = Static<typeof resultGroup>;

export type ResultTable = Awaited<ReturnType<typeof createResults>>;
export type ResultRow = ResultTable["rows"][number];

type ResultStates = Pick<States, "results" | "visits">;

/**
 * Adds up messages attempted in the interval, with all later results, and clicks in it. A template or variant counts
 * clicks only on links that no other sends. For runs, sources and bases, only clicks of tracked recipients are known.
 */
export function createResults(states: ResultStates, by: Grouping, interval: Interval) {
  return inTimeSlices(addUp(states, by, interval));
}

/** Adds up the messages of an interval and of the one before. Counts only clicks of recipients who granted tracking. */
export function sumMessages({ messages }: Results, interval: Interval): Promise<ResultTable["total"]> {
  return inTimeSlices(sumUp([...messages.values()], interval));
}

function* sumUp(messages: readonly Message[], interval: Interval): Steps<ResultTable["total"]> {
  const previous = precedingInterval(interval);
  const [total, before] = [createTally({}), createTally({})];
  yield* eachWithin(messages, interval, (message) => addMessage(total, message));
  if (previous === undefined) return { figures: toFigures(total), previous: null };
  yield* eachWithin(messages, previous, (message) => addMessage(before, message));
  return { figures: toFigures(total), previous: toFigures(before) };
}

/** Work in steps, between which other work gets its turn. Events that arrive meanwhile are not counted. */
type Steps<Result> = Generator<void, Result, void>;

/** Entries of one step, less than a millisecond's work. */
const STEP_ENTRIES = 256;

function* addUp(states: ResultStates, by: Grouping, interval: Interval) {
  const previous = precedingInterval(interval);
  const rowsOf = createNaming(states.results, by);
  const messages = [...states.results.messages.values()];
  const holders = yield* findHolders(states.results, by, { messages, rowsOf });
  const current = yield* tally(states, by, interval, { messages, rowsOf, holders });
  const before = previous && (yield* tally(states, by, previous, { messages, rowsOf, holders }));
  const rows = [...current.groups].sort(by === "day" ? ([one], [other]) => (one < other ? -1 : 1) : () => 0);
  const shift = previous === undefined ? 0 : interval.from! - previous.from!;
  return {
    interval,
    previous,
    rows: rows.slice(-RESULT_ROWS_MAX).map(([key, row]) => {
      // The row of the previous interval; for a day, the day at the same place. Null if nothing happened then, or there
      // is no such interval.
      const same = before?.groups.get(by === "day" ? toDay(Date.parse(key) - shift) : key);
      return { group: row.group, figures: toFigures(row), previous: same === undefined ? null : toFigures(same) };
    }),
    /** Number of older rows that are left out. */
    omitted: Math.max(0, rows.length - RESULT_ROWS_MAX),
    /** Clicks up to this UTC day are no longer told apart by day; null if the interval begins later. */
    mergedTo: findMergedDay(states.visits, previous ?? interval),
    total: { figures: toFigures(current.total), previous: before === undefined ? null : toFigures(before.total) },
  };
}

type Tally = ReturnType<typeof createTally>;

function createTally(group: ResultGroup) {
  return {
    group,
    messages: { attempted: 0, sent: 0, failed: 0, in_doubt: 0, replied: 0, opted_out: 0 },
    tracked: { recipients: 0, clicked: 0, clicks: 0, suspected: 0 },
    /** Times from the message to the first click, in ms. */
    firstClicks: [] as number[],
    /** Undefined if no link belongs to this group alone. */
    visits: undefined as VisitCounts | undefined,
  };
}

interface Naming {
  readonly messages: readonly Message[];
  readonly rowsOf: (message: Message) => readonly RowName[];
  /** Maps a link to the row whose messages alone hold it. */
  readonly holders: ReadonlyMap<string, RowName>;
}

function* tally({ results, visits }: ResultStates, by: Grouping, interval: Interval, naming: Naming) {
  const owners = new Set([...naming.holders.values()].map(({ key }) => key));
  const groups = new Map<string, Tally>();
  const total = createTally({});
  total.visits = noVisits();
  const findTally = ({ key, group }: RowName): Tally => {
    const known = groups.get(key);
    if (known !== undefined) return known;
    const row = createTally(group);
    if (by === "day" || by === "link" || owners.has(key)) row.visits = noVisits();
    groups.set(key, row);
    return row;
  };
  yield* eachWithin(naming.messages, interval, (message) => {
    addMessage(total, message);
    for (const name of naming.rowsOf(message)) addMessage(findTally(name), message);
  });
  let steps = 0;
  for (const [day, link, counts] of visitsWithin(visits, interval)) {
    if (++steps % STEP_ENTRIES === 0) yield;
    if (by !== "link" && !results.links.has(link)) continue;
    addVisits(total.visits, counts);
    const ofDay = by === "day" && day !== undefined ? toRowName({ day }) : naming.holders.get(link);
    const name = by === "link" ? toRowName({ link }) : ofDay;
    if (name !== undefined) addVisits(findTally(name).visits!, counts);
  }
  return { groups, total };
}

function* eachWithin(messages: readonly Message[], interval: Interval, add: (message: Message) => void): Steps<void> {
  const within = createBounds(interval);
  for (const [at, message] of messages.entries()) {
    if (at % STEP_ENTRIES === 0) yield;
    if (within(message.at)) add(message);
  }
}

/**
 * Returns a function that is true if a UTC day, or an ISO 8601 time, is within the interval. A day sorts before its
 * times.
 */
function createBounds({ from, to }: Interval): (time: string) => boolean {
  const [first, end] = [from, to].map((ms) => (ms === undefined ? undefined : toDay(ms)));
  return (time) => (first === undefined || time >= first) && (end === undefined || time < end);
}

/**
 * Returns the last day that is no longer told apart, if the interval begins no later; null if it begins after that day.
 */
function findMergedDay({ merged_to }: Visits, { from }: Interval): string | null {
  return merged_to === "" || (from !== undefined && toDay(from) > merged_to) ? null : merged_to;
}

/** Yields the clicks of each day and link. For days that are no longer told apart, the day is undefined. */
function* visitsWithin(
  visits: Visits,
  interval: Interval,
): Generator<readonly [day: string | undefined, link: string, counts: VisitCounts], void, void> {
  const within = createBounds(interval);
  for (const [day, links] of visits.days) {
    if (!within(day)) continue;
    for (const [link, counts] of links) yield [day, link, { ...counts, visitors: countVisitors(visits, day, link) }];
  }
  // Merged clicks cannot be divided, so they count only if all of them are within the interval.
  if (interval.from !== undefined || !within(visits.merged_to)) return;
  for (const [link, { earlier }] of visits.links) if (earlier !== null) yield [undefined, link, earlier];
}

/** The name of a row. The `key` of a day is the day itself, so that rows can be sorted by it. */
type RowName = ReturnType<typeof toRowName>;

function toRowName(group: ResultGroup) {
  return { key: group.day ?? JSON.stringify(Object.values(group)), group };
}

/** Returns the rows in which a message counts. A row's name is created once and shared by its messages. */
function createNaming({ groups, links, templates }: Results, by: Grouping): Naming["rowsOf"] {
  if (by === "day") return ({ at }) => [toRowName({ day: at.slice(0, DAY_CHARACTERS) })];
  if (by === "link") {
    const names = [...links.keys()].map((link) => toRowName({ link }));
    return (message) => message.links.map((number) => names[number]!);
  }
  const names = groups.map(({ template: id, variant, run_id, source, basis }) => {
    const template = { template: id === "" ? null : id, template_name: templates.get(id) ?? null };
    const group = {
      template,
      variant: { ...template, variant },
      run: { run_id },
      source: { source },
      basis: { basis },
    };
    return [toRowName(group[by])];
  });
  return (message) => names[message.group]!;
}

/**
 * Finds links that only one template or variant holds, among all messages ever sent. Other groups never hold a link
 * alone.
 */
function* findHolders(
  { links }: Results,
  by: Grouping,
  { messages, rowsOf }: Omit<Naming, "holders">,
): Steps<Naming["holders"]> {
  if (by !== "template" && by !== "variant") return new Map();
  const held = new Map<number, RowName | null>();
  for (const [at, message] of messages.entries()) {
    if (at % STEP_ENTRIES === 0) yield;
    if (message.outcome !== "sent") continue;
    const [name = null] = rowsOf(message);
    for (const link of message.links) {
      const holder = held.get(link);
      held.set(link, holder === undefined || holder?.key === name?.key ? name : null);
    }
  }
  const holders = new Map<string, RowName>();
  for (const [link, number] of links) {
    const holder = held.get(number);
    if (holder != null) holders.set(link, holder);
  }
  return holders;
}

function addMessage({ messages, tracked, firstClicks }: Tally, message: Message): void {
  messages.attempted++;
  if (message.outcome !== "open") messages[message.outcome]++;
  if (message.outcome !== "sent") return;
  if (message.replied) messages.replied++;
  if (message.opted_out) messages.opted_out++;
  if (message.tracked === null) return;
  const { clicks, suspected, first, sent } = message.tracked;
  tracked.recipients++;
  tracked.clicks += clicks;
  tracked.suspected += suspected;
  if (first === null) return;
  tracked.clicked++;
  firstClicks.push(first - sent);
}

function toFigures({ messages, tracked, firstClicks, visits }: Tally): Figures {
  return {
    ...messages,
    reply_rate: toRate(messages.replied, messages.sent),
    clicks: visits === undefined ? null : toClickFigures(visits),
    tracked: { ...tracked, first_click_ms: median(firstClicks) },
    click_rate: toRate(tracked.clicked, tracked.recipients),
  };
}

function toClickFigures({ clicks, suspected, visitors, anonymous, bots, probes }: VisitCounts): Figures["clicks"] {
  return { total: clicks - suspected, unique: visitors, suspected, anonymous, bots, probes };
}

function toRate(hits: number, trials: number): ResultRate | null {
  const interval = wilsonInterval(hits, trials);
  return interval === undefined ? null : { rate: hits / trials, ...interval };
}

function median(values: readonly number[]): number | null {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return low === undefined || high === undefined ? null : Math.round((low + high) / 2);
}
