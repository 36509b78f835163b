import type { ConversionCounts } from "../../projections/conversion-counts.ts";
import type { Message, Results } from "../../projections/message-outcomes-and-reactions.ts";
import { messageAt } from "../../projections/rewind-results.ts";
import {
  addMessage,
  noMessages,
  noTracked,
  sumMessagesByGroup,
  type Grouped,
  type MessageSums,
} from "../../projections/sum-messages-by-group.ts";
import {
  addVisits,
  noVisits,
  countVisitors,
  type VisitCounts,
  type Visits,
} from "../../projections/link-clicks-by-day.ts";
import { DAY_CHARACTERS, toDay } from "../../projections/parse-log-times.ts";
import { inTimeSlices } from "../platform/work-in-time-slices.ts";
import { wilsonInterval } from "../platform/proportion-statistics.ts";
import type { SomeStates } from "../../projections/all.ts";
import { createBounds, findBounds, precedingInterval, type Interval } from "../projector/parse-day-range.ts";
import {
  addConversions,
  addCost,
  noWorth,
  shareCosts,
  shareOut,
  toWorthFigures,
  type Figures,
  type Grouping,
  type ResultGroup,
  type ResultRate,
  type VariantRow,
} from "./results-figures.ts";

/**
 * Maximum number of rows in a table of results, which keeps the newest ones. Enough for one run a day in nearly three
 * years.
 */
export const RESULT_ROWS_MAX = 1_000;

export type ResultTable = Awaited<ReturnType<typeof createResults>>;

type ResultStates = SomeStates<"conversions" | "results" | "runs" | "visits">;
/**
 * Sums up the messages attempted in the interval, their later replies, and clicks. Rows by template or variant count
 * clicks on links that no other row sends; rows by run, source or basis only clicks of recipients who permit tracking.
 */
export function createResults(states: ResultStates, by: Grouping, interval: Interval) {
  return inTimeSlices(addUp(states, by, interval));
}

/**
 * Sums up messages of an interval, and of the one before it, as they were after the event at `position`, or as they are
 * now if that is undefined. Clicks count only if the recipient permits tracking.
 */
export function sumMessages(results: Results, interval: Interval, position: number | undefined) {
  return inTimeSlices(sumUp(results, interval, position));
}

function* sumUp(results: Results, interval: Interval, position: number | undefined) {
  const sum = function* (of: Interval): Steps<Figures> {
    const tally = createTally({});
    if (position === undefined) {
      const within = createBounds(of);
      for (const sums of yield* sumMessagesByGroup(results)) if (within(sums.day)) addSums(tally, sums);
    } else {
      yield* eachWithin([...results.messages.values()], of, (message) => {
        if (message.position <= position) addMessage(tally, messageAt(message, position));
      });
    }
    return toFigures(tally);
  };
  const previous = precedingInterval(interval);
  return { figures: yield* sum(interval), previous: previous === undefined ? null : yield* sum(previous) };
}

/** Sums up messages of an interval by variant, without clicks on shared links, conversions and costs. */
export function sumVariants(results: Results, interval: Interval): Promise<VariantRow[]> {
  return inTimeSlices(addUpVariants(results, interval));
}

function* addUpVariants(results: Results, interval: Interval): Steps<VariantRow[]> {
  const rowsOf = createNaming(results, "variant");
  const rows = new Map<string, Tally>();
  const within = createBounds(interval);
  for (const sums of yield* sumMessagesByGroup(results)) {
    if (!within(sums.day)) continue;
    for (const { key, group } of rowsOf(sums))
      addSums(
        rows.getOrInsertComputed(key, () => createTally(group)),
        sums,
      );
  }
  return [...rows.values()].map((row) => ({ group: row.group, figures: toFigures(row) }));
}

/** Work in steps, after each of which other work gets a turn. Events recorded meanwhile are not counted. */
type Steps<Result> = Generator<void, Result, void>;

/**
 * Number of messages, or of daily click counts of links, that results add up in one step. Other work has its turn after
 * each step, which takes less than a millisecond.
 */
const STEP_ENTRIES = 256;

function* addUp(states: ResultStates, by: Grouping, interval: Interval) {
  const previous = precedingInterval(interval);
  const rowsOf = createNaming(states.results, by);
  const sums = yield* sumMessagesByGroup(states.results);
  const holders = findHolders(states.results, by, { sums, rowsOf });
  const costs = shareCosts(states.runs, states.results.groups, sums);
  const naming = { sums, rowsOf, holders, costs, converted: findConverted(states) };
  const current = yield* tally(states, by, interval, naming);
  const before = previous && (yield* tally(states, by, previous, naming));
  const rows = [...current.groups].sort(by === "day" ? ([one], [other]) => (one < other ? -1 : 1) : () => 0);
  const shift = previous === undefined ? 0 : interval.from! - previous.from!;
  return {
    interval,
    previous,
    rows: rows.slice(-RESULT_ROWS_MAX).map(([key, row]) => {
      // Figures of the same row in the previous interval; null if it has no such row. Rows by day are matched by
      // number: the third day of the interval with the third day of the previous one.
      const same = before?.groups.get(by === "day" ? toDay(Date.parse(key) - shift) : key);
      return { group: row.group, figures: toFigures(row), previous: same === undefined ? null : toFigures(same) };
    }),
    /** Number of older rows that the table leaves out. */
    omitted: Math.max(0, rows.length - RESULT_ROWS_MAX),
    /** UTC day up to which clicks are kept only as one sum of many days; null if the interval begins later. */
    mergedTo: findMergedDay(states.visits, previous ?? interval),
    total: { figures: toFigures(current.total), previous: before === undefined ? null : toFigures(before.total) },
    /** Conversions and costs in the interval that cannot be assigned to a row. */
    other: toWorthFigures(current.other, 0),
  };
}

type Tally = ReturnType<typeof createTally>;

function createTally(group: ResultGroup) {
  return {
    group,
    messages: noMessages(),
    tracked: { ...noTracked(), converted: 0 },
    worth: noWorth(),
    /** Times from a message to the recipient's first click, in ms. */
    firstClicks: [] as number[],
    /**
     * Clicks that belong to this row of the results only, such as clicks on links that no other row's messages
     * contained. Undefined if no clicks can be assigned to the row.
     */
    visits: undefined as VisitCounts | undefined,
  };
}

interface Naming {
  readonly sums: readonly MessageSums[];
  readonly rowsOf: (message: Grouped) => readonly RowName[];
  /**
   * The row of the results to which a link's clicks belong, by the link; only links that no other row's messages
   * contained.
   */
  readonly holders: ReadonlyMap<string, RowName>;
  readonly costs: ReturnType<typeof shareCosts>;
  /** Messages with a link made for the recipient alone that led to a conversion. */
  readonly converted: readonly Grouped[];
}

/** Finds the sent messages of which a link made for the recipient alone led to a conversion. */
function findConverted({ conversions, results: { codes, messages } }: ResultStates): readonly Grouped[] {
  const found = new Set<Message>();
  for (const { code, conversions: count } of conversions.counts.values()) {
    const message = messages.get(codes.get(code) ?? -1);
    if (count > 0 && message?.outcome === "sent" && message.tracked !== null) found.add(message);
  }
  return [...found].map(toGrouped);
}

function toGrouped({ group, links, at }: Message): Grouped {
  return { group, links, day: at.slice(0, DAY_CHARACTERS) };
}

function* tally(states: ResultStates, by: Grouping, interval: Interval, naming: Naming) {
  const { results, visits } = states;
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
  const other = noWorth();
  const within = createBounds(interval);
  for (const [at, sums] of naming.sums.entries()) {
    if (!within(sums.day)) continue;
    const cost = naming.costs.parts[at];
    const names = naming.rowsOf(sums);
    addSums(total, sums);
    addCost(total.worth, cost);
    if (names.length === 0) addCost(other, cost);
    const shares = cost === undefined ? [] : shareOut(cost, names.length);
    for (const [number, name] of names.entries()) {
      const row = findTally(name);
      addSums(row, sums);
      addCost(row.worth, shares[number]);
    }
  }
  for (const message of naming.converted) {
    if (!within(message.day)) continue;
    for (const { tracked } of [total, ...naming.rowsOf(message).map(findTally)]) tracked.converted++;
  }
  for (const { at, cost } of naming.costs.others) {
    if (!within(at)) continue;
    addCost(total.worth, cost);
    addCost(by === "day" ? findTally(toRowName({ day: at.slice(0, DAY_CHARACTERS) })).worth : other, cost);
  }
  yield;
  for (const counts of states.conversions.counts.values()) {
    if (!within(counts.day)) continue;
    addConversions(total.worth, counts);
    const name = findConversionRow(results, by, naming, counts);
    addConversions(name === undefined ? other : findTally(name).worth, counts);
  }
  let steps = 0;
  for (const [day, link, counts] of visitsWithin(visits, interval)) {
    if (++steps % STEP_ENTRIES === 0) yield;
    if (by !== "link" && !results.links.has(link)) continue;
    addVisits(total.visits, counts);
    const ofDay = by === "day" && day !== undefined ? toRowName({ day }) : naming.holders.get(link);
    const name = by === "link" ? toRowName({ link }) : ofDay;
    if (name !== undefined) addVisits(findTally(name).visits!, counts);
  }
  return { groups, total, other };
}

/**
 * Returns the row in which conversions count: that of the message whose own link was clicked or, if that is unknown,
 * the only row that has sent the link. Undefined if there is none.
 */
function findConversionRow(
  { codes, messages }: Results,
  by: Grouping,
  { rowsOf, holders }: Naming,
  { day, link, code }: ConversionCounts,
): RowName | undefined {
  if (by === "day") return toRowName({ day });
  if (by === "link") return link === "" ? undefined : toRowName({ link });
  const message = messages.get(codes.get(code) ?? -1);
  return message === undefined ? holders.get(link) : rowsOf(toGrouped(message))[0];
}

/** Adds the messages of an interval. They are consecutive in `messages`, because times in the log never go back. */
function* eachWithin(messages: readonly Message[], interval: Interval, add: (message: Message) => void): Steps<void> {
  const [from, end] = findBounds(interval, messages);
  for (let at = from; at < end; at++) {
    if (at % STEP_ENTRIES === 0) yield;
    add(messages[at]!);
  }
}

/**
 * Returns the last day of the clicks that exist only as one total of many old days, without figures by day; null if
 * there is no such total, or the interval begins after that day.
 */
function findMergedDay({ merged_to }: Visits, { from }: Interval): string | null {
  return merged_to === "" || (from !== undefined && toDay(from) > merged_to) ? null : merged_to;
}

/** Yields the clicks by day and link. The day is undefined for clicks that are kept only as one sum of many days. */
function* visitsWithin(
  visits: Visits,
  interval: Interval,
): Generator<readonly [day: string | undefined, link: string, counts: VisitCounts], void, void> {
  const within = createBounds(interval);
  for (const [day, links] of visits.days) {
    if (!within(day)) continue;
    for (const [link, counts] of links) yield [day, link, { ...counts, visitors: countVisitors(visits, day, link) }];
  }
  // The sum of many old days cannot be divided, so it counts only if the interval contains all of them.
  if (interval.from !== undefined || !within(visits.merged_to)) return;
  for (const [link, { earlier }] of visits.links) if (earlier !== null) yield [undefined, link, earlier];
}

/** Name of a row of results. Its `key` for a day is the day itself, so that rows can be sorted by it. */
type RowName = ReturnType<typeof toRowName>;

function toRowName(group: ResultGroup) {
  return { key: group.day ?? JSON.stringify(Object.values(group)), group };
}

/**
 * Creates the function that names the rows of the results in which a message counts. All messages of a row get the same
 * object as its name.
 */
function createNaming({ groups, links, templates }: Results, by: Grouping): Naming["rowsOf"] {
  const known = new Map<string, readonly [RowName]>();
  /**
   * Returns one and the same array for all messages that count in the same row of the results. Comparing two arrays by
   * identity is faster than comparing the keys of two rows.
   */
  const toNames = (group: ResultGroup) => {
    const name = toRowName(group);
    return known.getOrInsertComputed(name.key, () => [name]);
  };
  if (by === "day") return ({ day }) => toNames({ day });
  if (by === "link") {
    const names = [...links.keys()].map((link) => toRowName({ link }));
    return ({ links: numbers }) => numbers.map((number) => names[number]!);
  }
  const names = groups.map(({ template: id, variant, run_id, campaign, source, basis }) => {
    const template = { template: id === "" ? null : id, template_name: templates.get(id) ?? null };
    const group = {
      template,
      variant: { ...template, variant },
      run: { run_id },
      campaign: { campaign },
      source: { source },
      basis: { basis },
    };
    return toNames(group[by]);
  });
  return ({ group }) => names[group]!;
}

/** Finds the links that only one template, variant or campaign has ever sent; none for other groupings. */
function findHolders(
  { links }: Results,
  by: Grouping,
  { sums, rowsOf }: { readonly sums: readonly MessageSums[]; readonly rowsOf: Naming["rowsOf"] },
): Naming["holders"] {
  if (by !== "template" && by !== "variant" && by !== "campaign") return new Map();
  const held: (RowName | null | undefined)[] = [];
  for (const sum of sums) {
    if (sum.messages.sent === 0) continue;
    const [name = null] = rowsOf(sum);
    for (const link of sum.links) if (held[link] !== name) held[link] = held[link] === undefined ? name : null;
  }
  const holders = new Map<string, RowName>();
  for (const [link, number] of links) {
    const holder = held[number];
    if (holder != null) holders.set(link, holder);
  }
  return holders;
}

/** Adds the counts of messages to those of a row or the total. */
function addSums({ messages, tracked, firstClicks }: Tally, sums: MessageSums): void {
  addCounts(messages, sums.messages);
  addCounts(tracked, sums.tracked);
  for (const ms of sums.firstClicks) firstClicks.push(ms);
}

function addCounts<Name extends string>(
  sums: Record<NoInfer<Name>, number>,
  counts: Readonly<Record<Name, number>>,
): void {
  for (const name in counts) sums[name] += counts[name];
}

function toFigures({ messages, tracked, firstClicks, visits, worth }: Tally): Figures {
  return {
    ...messages,
    seen_rate: toRate(messages.seen, messages.sent),
    reply_rate: toRate(messages.replied, messages.sent),
    clicks: visits === undefined ? null : toClickFigures(visits),
    tracked: { ...tracked, first_click_ms: median(firstClicks) },
    click_rate: toRate(tracked.clicked, tracked.recipients),
    conversion_rate: toRate(tracked.converted, tracked.recipients),
    ...toWorthFigures(worth, messages.sent),
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
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return low === undefined || high === undefined ? null : Math.round((low + high) / 2);
}
