import type { EventType } from "../../events/event-types-and-codec.ts";
import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import type { SomeStates } from "../../projections/all.ts";
import type { News, NewsCount, NewsRun, NewsTrouble } from "../../projections/news.ts";
import { TROUBLE_GAP_MS } from "../../projections/news.ts";
import { splitLink } from "../../projections/normalize-link.ts";
import { QUARTER_MS } from "../../projections/count-by-quarter-hour.ts";
import type { Suspected, SuspectedCounts } from "../../projections/clicks-suspected-as-networks-own.ts";
import { HOUR_MS } from "../../projections/parse-log-times.ts";
import { countInWords, grouped } from "../platform/format-numbers-and-lists.ts";
import { findBursts, tallyClicks, type Burst, type LinkTally } from "./tally-clicks-and-bot-bursts.ts";
import {
  isOperatorDecision,
  isHourly,
  sayKind,
  severityOfEnd,
  severityOfKind,
  type Severity,
} from "./news-severity-and-words.ts";
import {
  link,
  other,
  run as runMention,
  say,
  sayReason,
  type Mention,
  type Sentence,
} from "./sentences/sentence-parts.ts";
import { channelName } from "./sentences/short-sentences.ts";
import { sayCounts, sayRunEnd } from "./sentences/short-outreach.ts";

/**
 * A line in the console's list of news: a single event, or the events of one run, of one hour, or of one channel's
 * trouble.
 */
export interface NewsLine {
  /** Name of the line, which stays the same while its counts change. */
  readonly key: string;
  /** Event type by which a page chooses the line's icon. */
  readonly type: EventType;
  /** Time of the first event that the line sums up, in ms since 1970. */
  readonly from: number;
  /** Time of the last event that the line sums up, in ms since 1970. */
  readonly to: number;
  readonly severity: Severity | undefined;
  /**
   * Sentence of the line; its `lead` is stressed. Undefined if the line is a single event, whose own sentence is shown.
   */
  readonly words: LineWords | undefined;
  /** Positions of the first events that this line of the news sums up, in the order in which the page shows them. */
  readonly positions: readonly number[];
  /** Number of all events that the line of news sums up. */
  readonly count: number;
  /** Clicks of the line by link, the most clicked first. */
  readonly links: readonly LinkTally[];
  /** Id of the run that the line of news is about. */
  readonly runId?: string | undefined;
  /** Channel that the line of news is about. */
  readonly channel?: ChannelName;
}

export interface LineWords {
  readonly lead: Sentence;
  readonly rest: Sentence;
  readonly aside: string;
}

/** Span of a day in ms since 1970: from its start to the start of the next one. */
export interface DaySpan {
  readonly start: number;
  readonly end: number;
}

const MINUTE_MS = 60_000;

/** Maximum number of lines of news for a day; beyond it, similar lines are merged. */
const LINES_MAX = 12;

/**
 * Minimum number of a day's runs that are merged into one line. Fewer stay separate, because a merged line does not say
 * how each run ended.
 */
const MERGED_RUNS_MIN = 4;

/**
 * A line before similar lines are merged. `merges`: kind of the lines with which it may be merged; undefined if it may
 * not.
 */
interface Draft extends NewsLine {
  readonly merges: string | undefined;
  /** Run that the line is about. */
  readonly run?: NewsRun;
}

/**
 * Lengths of the windows, in hours: the clicks, replies and imports of a window become one line. A day that has too
 * many lines uses the next longer window. The last one covers a whole day, even one of 25 hours.
 */
const WINDOW_HOURS = [1, 2, 4, 8, 25];

/** Makes the lines of a day, the newest first. */
export function toNews({ news, suspected }: SomeStates<"news" | "suspected">, day: DaySpan): readonly NewsLine[] {
  const bursts = findBursts(suspected);
  const fixed = [
    ...bursts.map(toBurstLine),
    ...[...news.runs].map(toRunLine),
    ...joinTroubles([...news.troubles.values()]).map(toTroubleLine),
    ...toKindLines(news, day, undefined),
  ].filter(({ to }) => day.start <= to && to < day.end);
  let lines: readonly Draft[] = [];
  for (const hours of WINDOW_HOURS) {
    const window = hours * HOUR_MS;
    lines = [...fixed, ...toClickLines(suspected, day, window, bursts), ...toKindLines(news, day, window)];
    if (lines.length <= LINES_MAX) break;
  }
  return mergeAlike(lines).toSorted((one, two) => two.to - one.to || two.from - one.from);
}

/**
 * Merges the lines of each kind into one, the kind with most lines first, until the day has few enough lines. Lines
 * with a severity stay.
 */
function mergeAlike(lines: readonly Draft[]): readonly NewsLine[] {
  const kinds = Map.groupBy(lines, ({ merges }) => merges);
  kinds.delete(undefined);
  let merged = lines;
  for (const [kind, alike] of [...kinds].toSorted(([, one], [, two]) => two.length - one.length)) {
    if (merged.length <= LINES_MAX || alike.length < 2) break;
    if (kind === "run" && alike.length < MERGED_RUNS_MIN) continue;
    merged = [...merged.filter(({ merges }) => merges !== kind), mergeLines(alike)];
  }
  return merged;
}

function mergeLines(alike: readonly Draft[]): Draft {
  const sorted = alike.toSorted((one, two) => one.to - two.to);
  const [first] = sorted as [Draft];
  const count = alike.reduce((sum, line) => sum + line.count, 0);
  const merged = {
    ...first,
    key: `${first.merges}-all`,
    from: Math.min(...alike.map(({ from }) => from)),
    to: Math.max(...alike.map(({ to }) => to)),
    positions: sorted.flatMap(({ positions }) => positions),
    count,
  };
  const runs = alike.flatMap(({ run }) => run ?? []);
  if (runs.length === 0) return { ...merged, words: { ...sayKind(first.merges!, count), aside: "" } };
  const counts = runs.map(toCounts).reduce((sum, more) => ({
    sent: sum.sent + more.sent,
    skipped: sum.skipped + more.skipped,
    contacted: sum.contacted + more.contacted,
    failed: sum.failed + more.failed,
    in_doubt: sum.in_doubt + more.in_doubt,
  }));
  const isDry = first.merges === "dry";
  const called = countInWords(runs.length, isDry ? "dry run" : "run");
  return {
    ...merged,
    positions: runs.toSorted((one, two) => toWrong(two) - toWrong(one)).flatMap(({ ended }) => ended ?? []),
    count: runs.length,
    runId: undefined,
    // The sums of several dry runs are left out, because they mostly count the same recipients.
    words: { lead: [called], rest: isDry ? [] : [`: ${sayCounts(counts)}`], aside: "" },
  };
}

function toRunLine([runId, run]: readonly [string, NewsRun]): Draft {
  const { first, last, end, ended, dry_run, template, wrong, skips, sends } = run;
  const counts = toCounts(run);
  const severity = severityOfEnd(end);
  const common = { key: `run-${runId}`, from: first, to: last, severity, links: [], runId, run };
  const merges = end === null || severity !== undefined ? undefined : dry_run ? "dry" : "run";
  if (dry_run) {
    const words = ended === null ? { lead: [say`a dry run is in progress`].flat(), rest: [], aside: "" } : undefined;
    return { ...common, merges, type: "DryRunFinished", words, positions: ended === null ? [] : [ended], count: 1 };
  }
  const named = template === null ? [] : say`, ${other(template)}`;
  const said = sayCounts(counts);
  const rest =
    end === "abandoned"
      ? [` was cut off by a restart: ${said}`]
      : say`${named}: ${said}${end === null ? " so far" : sayRunEnd(end)}`;
  return {
    ...common,
    merges,
    type: end === "abandoned" ? "RunAbandoned" : "DirectMessageSent",
    words: { lead: [runMention(runId)], rest, aside: "" },
    positions: [...wrong, ...skips, ...sends],
    count: counts.sent + counts.skipped + counts.contacted + counts.failed + counts.in_doubt,
  };
}

function toWrong({ failed, doubts }: NewsRun): number {
  return failed + doubts.length;
}

function toCounts({ sent, skipped, contacted = 0, failed, doubts }: NewsRun) {
  return { sent, skipped, contacted, failed, in_doubt: doubts.length };
}

function toBurstLine({ link, first, last, bots }: Burst): Draft {
  const minutes = Math.max(1, Math.ceil((last - first) / MINUTE_MS));
  return {
    key: `burst-${link}-${first}`,
    type: "LinkClicked",
    from: first,
    to: last,
    severity: "warning",
    merges: undefined,
    words: {
      lead: [`${countInWords(bots, "click")} by bots`],
      rest: say` on ${nameLink(link)} within ${countInWords(minutes, "minute")}, not counted as people`,
      aside: "",
    },
    positions: [],
    count: bots,
    links: [],
  };
}

function nameLink(name: string): Mention {
  return link(...splitLink(name));
}

function toClickLines(
  suspected: Suspected,
  day: DaySpan,
  windowMs: number,
  bursts: readonly Burst[],
): readonly Draft[] {
  return [...tallyClicks(suspected, day, windowMs, bursts)].flatMap(([window, { first, last, links, others }]) => {
    const sum = [...links.values(), others].reduce((all, more) => ({
      clicks: all.clicks + more.clicks,
      bots: all.bots + more.bots,
      suspected: all.suspected + more.suspected,
    }));
    if (sum.clicks + sum.bots === 0) return [];
    const tallies = [...links.values()].toSorted((one, two) => toPeople(two) - toPeople(one) || two.bots - one.bots);
    const [only] = tallies;
    const isMore = others.clicks + others.bots > 0;
    const on =
      tallies.length === 1 && only !== undefined && !isMore
        ? say` on ${nameLink(only.link)}`
        : [` on ${isMore ? "more than " : ""}${countInWords(links.size, "link")}`];
    return [
      {
        key: `clicks-${windowMs}-${window}-${day.start}`,
        type: "LinkClicked" as const,
        from: first,
        to: last,
        severity: undefined,
        merges: undefined,
        words: { ...sayClicks(sum), rest: on },
        positions: [],
        count: sum.clicks + sum.bots,
        links: tallies,
      },
    ];
  });
}

/** Says who clicked: people in `lead`, bots and the network itself in `aside`. */
function sayClicks(sum: SuspectedCounts): { readonly lead: Sentence; readonly aside: string } {
  const people = toPeople(sum);
  const bots = `${grouped(sum.bots)} by bots`;
  const network = `${grouped(sum.suspected)} probably by X itself`;
  const asides = [...(sum.bots > 0 ? [bots] : []), ...(sum.suspected > 0 ? [network] : [])];
  if (people > 0) return { lead: [`${countInWords(people, "click")} by people`], aside: asides.join(", ") };
  const [lead = "", ...rest] = asides;
  return {
    lead: [lead.replace(" ", (sum.bots || sum.suspected) === 1 ? " click " : " clicks ")],
    aside: rest.join(", "),
  };
}

/**
 * Returns the number of clicks by people: `clicks`, from which bots are excluded already, less those that the network
 * itself probably made.
 */
export function toPeople({ clicks, suspected }: SuspectedCounts): number {
  return clicks - suspected;
}

/**
 * Merges a pause of a channel into the channel's dead letters of the same time, if there are any, so that one cause
 * becomes one line. A suspended channel keeps its own line.
 */
function joinTroubles(all: readonly NewsTrouble[]): readonly NewsTrouble[] {
  const joined: NewsTrouble[] = all.filter(({ kind }) => kind !== "late").map((trouble) => ({ ...trouble }));
  for (const late of all) {
    if (late.kind !== "late") continue;
    const host = joined.find(
      ({ kind, channel, first, last }) =>
        kind === "dead" &&
        channel === late.channel &&
        late.first - TROUBLE_GAP_MS <= last &&
        first <= late.last + TROUBLE_GAP_MS,
    );
    if (host === undefined || late.isSuspended) {
      joined.push(late);
      continue;
    }
    Object.assign(host, { first: Math.min(host.first, late.first), last: Math.max(host.last, late.last) });
    host.positions = [...host.positions, ...late.positions];
  }
  return joined;
}

function toTroubleLine(trouble: NewsTrouble): Draft {
  const { kind, channel, cause, first, last, count, positions, isOpen, isRemoved, isSuspended } = trouble;
  const name = channelName(channel);
  const dispatches = countInWords(count, "dispatch", "dispatches");
  const why = say` ${sayReason(cause)}`;
  const words = {
    dead: { lead: [`${name} did not take ${dispatches}:`], rest: why },
    in_doubt: { lead: [`${dispatches} may or may not have reached ${name}:`], rest: why },
    late: isSuspended
      ? { lead: [`${name} ${isOpen ? "is" : "was"} suspended:`], rest: why }
      : {
          lead: [`${name} paused ${countInWords(count, "time")}`],
          rest: say` after ${other(cause)}${isOpen ? "" : isRemoved ? ", and was unsubscribed" : ", and works again"}`,
        },
  }[kind];
  return {
    key: `${kind}-${channel}-${positions[0]}`,
    type: { dead: "DispatchAbandoned", in_doubt: "DispatchInDoubt", late: "ChannelSuspended" }[kind] as EventType,
    from: first,
    to: last,
    severity: kind === "dead" || isSuspended ? "error" : "warning",
    merges: undefined,
    words: { ...words, aside: "" },
    positions,
    count: positions.length,
    links: [],
    channel,
  };
}

/**
 * Makes one line for each kind of event and each window of time. With `windowMs`, covers the kinds in {@link HOURLY};
 * without it, all other kinds, in windows of a quarter of an hour.
 */
function toKindLines({ quarters }: News, day: DaySpan, windowMs: number | undefined): readonly Draft[] {
  const sums = new Map<string, NewsCount & { readonly kind: string }>();
  for (const [quarter, kinds] of quarters) {
    if (quarter < day.start || quarter >= day.end) continue;
    const window = Math.floor((quarter - day.start) / (windowMs ?? QUARTER_MS));
    for (const [kind, more] of kinds) {
      if (isHourly(kind) !== (windowMs !== undefined)) continue;
      const key = `${kind}-${windowMs}-${window}`;
      const sum = sums.get(key);
      if (sum === undefined) {
        sums.set(key, { kind, ...more });
        continue;
      }
      sum.count += more.count;
      sum.last = more.last;
      sum.positions = [...sum.positions, ...more.positions];
    }
  }
  return [...sums].map(([key, { kind, count, first, last, positions }]) => {
    const severity = severityOfKind(kind);
    return {
      key: `${key}-${day.start}`,
      type: kind.split(":")[0] as EventType,
      from: first,
      to: last,
      severity,
      merges: severity === undefined && !isOperatorDecision(kind) ? kind : undefined,
      words: count === 1 ? undefined : { ...sayKind(kind, count), aside: "" },
      positions,
      count,
      links: [],
    };
  });
}
