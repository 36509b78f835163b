// Reads the console's pages about activity: a page of the log, a single event, and the news day by day.
import { EVENT_TYPES, type EventType, type Recorded } from "../../events/event-types-and-codec.ts";
import { hideCodes } from "../networks/hide-personal-codes.ts";
import { MomentFolding } from "../projector/operation-states-as-of.ts";
import { findPlace, startOfDay } from "../projector/parse-moment.ts";
import { toNews, toPeople, type DaySpan, type NewsLine } from "./news.ts";
import type { SomeStates } from "../../projections/all.ts";
import { noDecisions, noSums } from "../../projections/news.ts";
import { labelOf, periodsOf } from "../../projections/sum-quarters-to-hours-and-days.ts";
import { noClicks } from "../../projections/clicks-suspected-as-networks-own.ts";
import { msOf } from "../../projections/parse-log-times.ts";
import { noMessages } from "../../projections/message-totals.ts";
import { eventAt, eventsAt } from "../log/event-log.ts";
import { countInWords, grouped } from "../platform/format-numbers-and-lists.ts";
import { readOrReason } from "../platform/service-error.ts";
import { describeChange } from "../projector/event-state-changes.ts";
import type { PageMoment, UnfoldedMoment } from "../projector/moment-of-console-page.ts";
import { findCauses, findEffects } from "./causes-and-effects.ts";
import { readOutcomes } from "./dispatch-outcomes.ts";
import { toReading } from "./find-event.ts";
import { toSelection, type LogFilter } from "./log-filter.ts";
import { readPage } from "./select-events.ts";
import { join, mention, say, type Sentence } from "./sentences/sentence-parts.ts";

/** Event types that are routine, so the list of news leaves them out. */
const ROUTINE: readonly EventType[] = [
  "RequestAnswered",
  "PersonalDataRead",
  "ProjectionRebuilt",
  "TokenUsed",
  "TokenRefreshed",
  "InboxRead",
  "SourceRead",
  "DispatchClaimed",
  "DispatchSucceeded",
  "DispatchSkipped",
  "DispatchFailed",
  "DryRunRecipientListed",
];

/** Event types that the filter of events selects if the operator asks for news only. */
export const NEWS_TYPES: readonly EventType[] = EVENT_TYPES.filter((type) => !ROUTINE.includes(type));

/** Query for a page of the log. */
interface LogPageQuery {
  readonly filter: LogFilter;
  /** Event types that the page leaves out. */
  readonly excluded: readonly string[];
  /** Position before which the page begins, where the previous page ended. */
  readonly before: number | undefined;
  /** Time zone, an IANA name, of the days in the filter. */
  readonly timezone: string;
}

/** Maximum number of events on one page of the log. */
const SHOWN_MAX = 100;

/** Reads a page of the log, newest events first. `fault`: a sentence on what is wrong with the operator's filter. */
export async function readLogPage(moment: PageMoment<"contacts">, query: LogPageQuery) {
  const { store, position } = moment;
  const { filter, excluded, before, timezone } = query;
  const all = filter.types;
  const types = excluded.length === 0 ? all : (all ?? EVENT_TYPES).filter((type) => !excluded.includes(type));
  const wanted = types === undefined ? filter : { ...filter, types };
  const contacts = () => moment.state("contacts");
  const selection = await readOrReason(() => toSelection(wanted, { store, contacts, timezone, position }));
  if (typeof selection === "string") return { fault: selection, recipient: undefined };
  const { events, next } = await readPage(store, selection, { before, limit: SHOWN_MAX });
  return {
    fault: undefined,
    /** Recipient that all events of the page are about, if the filter names one. */
    recipient: selection.recipient,
    /** Event types on the page. Undefined if the filter selects all types. */
    types,
    events,
    /** Position before which the next page begins. Undefined on the last page. */
    next,
    /** Position after which the filter can select no event. */
    last: selection.kind === "range" ? selection.range.last : position,
  };
}

/** Finds the event at a position; undefined if the text is no position, or the log ends before it. */
export async function findEventAt({ store }: UnfoldedMoment, text: string): Promise<Recorded | undefined> {
  const position = Number(/^\d{1,15}$/.exec(text)?.[0] ?? 0);
  const [event] = position < 1 ? [] : await Array.fromAsync(store.read({ from: position, to: position, limit: 1 }));
  return event;
}

/**
 * Reads the event at a position, with its causes, effects and dispatches. Undefined if the log has no such event at the
 * page's moment.
 */
export async function readEventPage(moment: PageMoment<"contacts">, at: string, projection: string | undefined) {
  const event = await findEventAt(moment, at);
  if (event === undefined || event.position > moment.position) return undefined;
  return {
    event,
    /** Event as the page shows it, with the codes of recipients' own links hidden. */
    shown: hideCodes(event),
    recipient: "recipient" in event.data ? event.data.recipient : undefined,
    /** Hash of the event before this one; 64 zeros before the first. */
    previousHash: (await moment.store.hashAt(event.position - 1)) ?? "",
    causes: await findCauses(moment, event),
    effects: await findEffects(moment, event),
    outcomes: await readOutcomes(toReading(moment), event),
    change: await describeChange(moment.past, event, projection),
  };
}

/** A line of the news, with the first of the events that it sums up. */
interface ReadLine extends NewsLine {
  readonly events: readonly Recorded[];
}

/** A day of the news, with its lines or only its sums. */
interface NewsDay extends DaySpan {
  /** The day, YYYY-MM-DD. */
  readonly date: string;
  /** Sums of the day in words; empty if nothing is counted. */
  readonly sums: string;
  /** Lines of the day, the newest first. Undefined for a day of which only the sums are read. */
  readonly lines: readonly ReadLine[] | undefined;
}

interface NewsQuery {
  /** Time zone of the days, an IANA name. */
  readonly timezone: string;
  /** Newest day to read, YYYY-MM-DD; the day of the moment by default. */
  readonly day?: string | undefined;
  /** Position from which on events are news to the reader. Lines with older events alone are left out. */
  readonly since?: number | undefined;
  /** Maximum number of lines. */
  readonly limit?: number;
}

/**
 * Number of days for which the page of news has single lines: the chosen day and the day before. Older days have only
 * sums.
 */
const OPEN_DAYS = 2;

/**
 * Number of days for which the news page shows only daily sums. These days precede the {@link OPEN_DAYS} days whose
 * news the page shows line by line.
 */
const SUMMED_DAYS = 12;

/** Maximum number of events read for one line of the news. */
const ROWS_MAX = 10;

/** Maximum number of events read for all lines together, so that the page does not grow too long. */
const ALL_ROWS_MAX = 120;

const NAMES = ["news", "suspected", "timeline"] as const;
type NewsMoment = PageMoment<(typeof NAMES)[number]>;

/**
 * Reads the news of a day and of the day before, and the sums of the days before those. Throws MomentFolding while
 * projections of a past day are being folded, and a ServiceError (usage) if `day` is no day.
 */
export async function readNews(moment: NewsMoment, { timezone, day, since, limit = Infinity }: NewsQuery) {
  const anchor = day === undefined ? undefined : startOfDay(day, timezone)?.getTime();
  const until = anchor === undefined ? moment.now : Math.min(anchor, moment.now);
  const states = await statesFor(moment, until, timezone);
  const periods = { unit: "day", timezone, until, count: OPEN_DAYS + SUMMED_DAYS } as const;
  const inOf = <Counts extends Record<keyof Counts, number>>(
    quarters: Parameters<typeof periodsOf<Counts>>[0],
    none: () => Counts,
  ) => periodsOf(quarters, { ...periods, until: nextDay(until, timezone) - 1 }, none);
  const clicks = inOf(states.suspected.quarters, noClicks);
  const sums = inOf(states.news.sums, noSums);
  const decisions = inOf(states.news.decisions, noDecisions);
  const days = inOf(states.timeline.quarters, noMessages).map(({ start, counts }, at): NewsDay => {
    const { replies, dead } = sums[at]!.counts;
    const people = toPeople(clicks[at]!.counts);
    const summed = [
      ...(counts.sent > 0 ? [`${grouped(counts.sent)} sent`] : []),
      ...(people > 0 ? [`${countInWords(people, "click")} by people`] : []),
      ...(replies > 0 ? [countInWords(replies, "reply", "replies")] : []),
      ...sayLetters({ dead, ...decisions[at]!.counts }),
    ].join(" · ");
    return { date: labelOf(start, periods), start, end: nextDay(start, timezone), sums: summed, lines: undefined };
  });
  days.reverse();
  const sinceMs = since === undefined ? -Infinity : await timeAt(moment, since);
  const from = Math.max(sinceMs, moment.span?.from ?? days[0]!.start);
  const shown = days.filter(({ end }) => end > from);
  let left = limit;
  const open: NewsDay[] = [];
  for (const one of shown.slice(0, OPEN_DAYS)) {
    const all = toNews(states, one).filter(({ to }) => to >= sinceMs);
    const lines = all.slice(0, left);
    // If no line of a day is within the limit, the day is left out: shown with its sums but without lines, it would
    // seem empty.
    if (lines.length < all.length && lines.length === 0) break;
    left -= lines.length;
    open.push({ ...one, lines: await readLines(moment, lines) });
  }
  const oldest = days.at(-1)!;
  return {
    open,
    summed: shown.slice(OPEN_DAYS).filter(({ sums: inWords }) => inWords !== ""),
    /** Day with which the next page begins. Undefined on the last page. */
    older: oldest.start > from ? labelOf(oldest.start - 1, periods) : undefined,
  };
}

interface LetterCounts {
  readonly dead: number;
  readonly retried: number;
  readonly discarded: number;
}

/** Says how many dispatches were given up, retried and discarded; empty if none were. */
function sayLetters({ dead, retried, discarded }: LetterCounts): readonly string[] {
  const all = [[dead, "given up"] as const, [retried, "retried"] as const, [discarded, "discarded"] as const];
  const [first, ...others] = all.filter(([number]) => number > 0);
  if (first === undefined) return [];
  const head = `${countInWords(first[0], "dispatch", "dispatches")} ${first[1]}`;
  return [[head, ...others.map(([number, done]) => `${grouped(number)} ${done}`)].join(", ")];
}

/** Returns the time of the event at a position, in ms since 1970; infinite if the log ends before it. */
async function timeAt({ store, position }: NewsMoment, at: number): Promise<number> {
  return at > position ? Infinity : msOf((await eventAt(store, at)).time);
}

function nextDay(ms: number, timezone: string): number {
  const zoned = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timezone);
  return zoned.toPlainDate().add({ days: 1 }).toZonedDateTime(timezone).epochMilliseconds;
}

/**
 * Returns projection states that contain the news of the day at `until`. The page's own states cover today and
 * yesterday. For an earlier day, folds the log up to the end of the next day, because the day's runs have ended by
 * then.
 */
async function statesFor(
  moment: NewsMoment,
  until: number,
  timezone: string,
): Promise<SomeStates<(typeof NAMES)[number]>> {
  const end = nextDay(nextDay(until, timezone), timezone) - 1;
  if (end >= moment.now) {
    return { news: moment.state("news"), suspected: moment.state("suspected"), timeline: moment.state("timeline") };
  }
  const { position } = await findPlace(moment.store, { until: new Date(end) });
  const states = await moment.past.at(Math.min(position, moment.position), NAMES);
  if (states === undefined) throw new MomentFolding(position);
  return states;
}

async function readLines({ store }: NewsMoment, lines: readonly NewsLine[]): Promise<readonly ReadLine[]> {
  let left = ALL_ROWS_MAX;
  const shown = lines.map((line) => {
    const positions = line.positions.slice(0, line.words === undefined ? 1 : Math.min(ROWS_MAX, Math.max(0, left)));
    left -= positions.length;
    return { ...line, positions };
  });
  const positions = [...new Set(shown.flatMap((line) => line.positions))].toSorted((one, two) => one - two);
  const events = new Map<number, Recorded>();
  for await (const event of eventsAt(store, positions)) events.set(event.position, event);
  return shown.map((line) => {
    const own = line.positions.flatMap((position) => events.get(position) ?? []);
    const { words } = line;
    const rest = words === undefined ? [] : [...words.rest, ...sayNames(line, own)];
    return { ...line, words: words && { ...words, rest }, events: own };
  });
}

/** Maximum number of people that a line about replies names. */
const NAMES_MAX = 2;

/** Names the first senders in a line about replies; empty for any other line. */
function sayNames({ type, count }: NewsLine, events: readonly Recorded[]): Sentence {
  if (type !== "DirectMessageReceived") return [];
  const names = events.flatMap((event) =>
    event.type === "DirectMessageReceived" ? [mention(event.data.recipient)] : [],
  );
  const shown = names.slice(0, NAMES_MAX);
  const rest = count - shown.length;
  return say`: ${join(shown, ", ")}${rest > 0 ? ` and ${grouped(rest)} more` : ""}`;
}
