import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import { findChannel, listChannels, pendingOf, type Deliveries } from "../../projections/deliveries.ts";
import type { LetterStatus } from "../../projections/dead-letters.ts";
import { QUARTER_MS } from "../../projections/count-by-quarter-hour.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { formatDuration, grouped } from "../platform/format-numbers-and-lists.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { readOrReason } from "../platform/service-error.ts";
import type { PageMoment, ReadMoment } from "../projector/moment-of-console-page.ts";
import {
  FILTER_NAMES,
  parseDispatchFilter,
  STATUSES,
  type DispatchFilter,
  type FilterTexts,
} from "./dead-letter-filter.ts";
import {
  describeSkipped,
  findLetters,
  listAllLetters,
  mayDouble,
  type DeadLetter,
  type RetryOptions,
} from "./find-and-decide-dead-letters.ts";
import { measureLags, type ChannelLag } from "./channel-lag.ts";
import { formatCursor, parseCursor, readDispatchPage, type ListCursor } from "./undelivered-pages.ts";

/** Numbers of a channel's dispatches: those delivered, those that wait, and those that were given up. */
export type ChannelBacklog = ReturnType<typeof readBacklog>;

export function readBacklog(deliveries: Deliveries, name: ChannelName) {
  const channel = findChannel(deliveries, name);
  const { suspended, dead, in_doubt, dispatched, skipped, recent } = channel;
  const describe = (why: "suspended" | "may_double") => describeSkipped({ event_id: "", channel: name, why });
  return {
    name,
    title: titleFor(name),
    suspended,
    pending: pendingOf(channel),
    delivered: dispatched,
    skipped,
    dead,
    inDoubt: in_doubt,
    recent,
    /** Sentence on why a dead letter cannot be retried while its channel is suspended. */
    whySuspended: describe("suspended"),
    /** Warning before a retry of a dispatch that may have arrived. */
    whyDouble: describe("may_double"),
  };
}

/** Returns the name of a channel as a title: `Chat`, or `Webhook crm` for a named webhook. */
function titleFor(name: ChannelName): string {
  return name.charAt(0).toUpperCase() + name.slice(1).replace("-", " ");
}

export function listBacklogs(deliveries: Deliveries): readonly ChannelBacklog[] {
  return listChannels(deliveries).map((name) => readBacklog(deliveries, name));
}

/** Says in words how long it takes until no dispatch is pending, or why this cannot be estimated. */
export function drainInWords({ drained_in_seconds: seconds, suspended }: ChannelLag): string {
  if (seconds !== null) return seconds === 0 ? "–" : formatDuration(seconds);
  return suspended === null ? "not at this rate" : "not while suspended";
}

/** Quarters of an hour in the curve of a channel's rate: a day. */
const CURVE_QUARTERS = 96;

/** Reads what the tile of each channel shows: numbers, lag, and the rate of the last 24 hours by quarters of an hour. */
export async function readChannels(moment: ChannelMoment) {
  const { store, state, position, now, reader } = moment;
  const deliveries = state("deliveries");
  const isConfigured = (name: ChannelName): boolean => reader.configured.includes(name);
  const sources = {
    store,
    deliveries: () => deliveries,
    isConfigured,
    tail: { to: position, eventsMax: reader.eventsMax },
  };
  const lags = await measureLags(sources, listChannels(deliveries), now);
  const last = now - (now % QUARTER_MS);
  return lags.map((lag) => {
    const backlog = readBacklog(deliveries, lag.channel);
    const curve = Array.from({ length: CURVE_QUARTERS }, (_, at) => {
      const counts = backlog.recent.get(last - (CURVE_QUARTERS - 1 - at) * QUARTER_MS);
      return counts ?? { delivered: 0, failed: 0 };
    });
    const sum = (kind: "delivered" | "failed"): number => curve.reduce((all, counts) => all + counts[kind], 0);
    return { lag, backlog, curve, delivered: sum("delivered"), failed: sum("failed"), drainedIn: drainInWords(lag) };
  });
}

/** Moment of a page that shows channels, with the limits of its reads. */
interface ChannelMoment extends PageMoment<"deliveries"> {
  readonly reader: PageMoment["reader"] & { readonly configured: readonly ChannelName[]; readonly eventsMax: number };
}

/** Query of a page that shows dispatches which were given up or are in doubt. */
interface UndeliveredQuery {
  readonly timezone: string;
  /** Returns the text of a filter's member, as the page's address has it. */
  readonly readText: (name: keyof FilterTexts) => string | undefined;
  /** Returns the place from which the list of a status is read, as {@link formatCursor} writes it. */
  readonly readCursor: (status: LetterStatus) => string;
  readonly recognisesMs: RetryOptions["recognisesMs"];
}

/** Dispatch that was given up or is in doubt, with its events. */
export type UndeliveredDispatch = UndeliveredGroup["dispatches"][number];

/** Dead letters of one channel and one cause, or the dispatches of one channel that are in doubt. */
export type UndeliveredGroup = Awaited<ReturnType<typeof readGroup>>;

/** Number of dispatches of a group that are listed before the operator chooses the group's channel. */
const GROUP_LISTED = 6;

/**
 * Reads the dispatches that were given up or are in doubt and match a filter, in groups. `fault`: what is wrong with the
 * filter.
 */
export async function readUndelivered(moment: ReadMoment<"deliveries">, query: UndeliveredQuery) {
  const texts: FilterTexts = omitUndefined(
    Object.fromEntries(FILTER_NAMES.map((name) => [name, query.readText(name)])) as FilterTexts,
  );
  const filter = await readOrReason(() => parseDispatchFilter(texts, query.timezone));
  if (typeof filter === "string") return { texts, fault: filter, lists: [] };
  const statuses = STATUSES.filter((status) => texts.status === undefined || texts.status === status);
  let all: ReturnType<typeof listAllLetters> | undefined;
  const listAll = () => (all ??= listAllLetters(moment.store, moment.position));
  const lists = statuses.map(async (status) => {
    const letters = await findListed(moment, { ...filter, status }, listAll);
    const groups = [...Map.groupBy(letters, (letter) => `${letter.channel} ${toCause(letter, status)}`).values()];
    const after = parseCursor(query.readCursor(status));
    const isAlone = groups.length === 1 && texts.channel !== undefined;
    const limit = isAlone || after !== undefined ? undefined : GROUP_LISTED;
    const read = groups.map((group) => readGroup(moment, group, { status, after, limit, ...query }));
    return { status, count: letters.length, groups: await Promise.all(read) };
  });
  return { texts, fault: undefined, lists: await Promise.all(lists) };
}

/**
 * Finds the dead letters that match the filter and existed at the moment that the page shows. The state may be newer,
 * so later dead letters are left out.
 */
async function findListed(
  { store, state, position }: ReadMoment<"deliveries">,
  filter: DispatchFilter,
  listAll: () => ReturnType<typeof listAllLetters>,
): Promise<readonly DeadLetter[]> {
  const found = await findLetters(store, { deliveries: state("deliveries"), position }, filter, listAll);
  return found.filter((letter) => letter.position <= position);
}

/**
 * Returns the value of the filter's `error` that selects dead letters with the same cause as this one; empty for
 * dispatches in doubt.
 */
function toCause({ failure: { asked, status } }: DeadLetter, letterStatus: LetterStatus): string {
  if (letterStatus === "in_doubt") return "";
  if (status !== undefined) return String(status);
  return asked ? "no_answer" : "no_request";
}

interface GroupQuery {
  readonly status: LetterStatus;
  readonly after: ListCursor | undefined;
  readonly limit: number | undefined;
  readonly recognisesMs: RetryOptions["recognisesMs"];
}

async function readGroup(
  moment: ReadMoment<"deliveries">,
  letters: readonly DeadLetter[],
  { status, after, limit, recognisesMs }: GroupQuery,
) {
  const { store, state, now } = moment;
  const [first] = letters;
  if (first === undefined) throw new Error("a group of dispatches is empty");
  const { dispatches, next } = await readDispatchPage(store, letters, after, limit);
  const request = dispatches[0]?.outcome.data.requests[0];
  return {
    backlog: readBacklog(state("deliveries"), first.channel),
    error: toCause(first, status),
    count: letters.length,
    /** Number of dead letters whose retry may arrive twice. */
    doubles: letters.filter((letter) => mayDouble(letter, status, now, recognisesMs)).length,
    from: isoTime(first.at),
    to: isoTime(letters.at(-1)!.at),
    /** Position of the last event that ended a dispatch of the group. */
    until: letters.at(-1)!.position,
    /** Error message of the network, or of the fault, for the newest dispatch of the group. */
    detail: request?.detail ?? "",
    attempts: request?.attempt ?? 0,
    dispatches,
    /**
     * Place at which the next page of the list begins. Undefined on the last page, and in a list that shows only a few.
     */
    next: limit === undefined ? next && formatCursor(next) : undefined,
  };
}

/** Dead letters that an operator has chosen, as the address of the page that asks for confirmation names them. */
interface ChosenLetters {
  readonly texts: FilterTexts;
  /** Positions of the chosen events. Undefined if all dead letters that match the filter are chosen. */
  readonly sources: readonly number[] | undefined;
  readonly timezone: string;
  readonly recognisesMs: RetryOptions["recognisesMs"];
}

/** Counts the dead letters of one channel that an operator has chosen. Undefined without a channel, or without any. */
export async function countChosen(moment: PageMoment<"deliveries">, { texts, sources, ...query }: ChosenLetters) {
  const filter = await readOrReason(() => parseDispatchFilter({ ...texts, status: "dead" }, query.timezone));
  if (typeof filter === "string" || filter.channel === undefined) return undefined;
  const found = await findListed(moment, filter, () => listAllLetters(moment.store, moment.position));
  const letters = found.filter(({ source }) => sources === undefined || sources.includes(source));
  if (letters.length === 0) return undefined;
  const isDouble = (letter: DeadLetter): boolean => mayDouble(letter, "dead", moment.now, query.recognisesMs);
  return {
    backlog: readBacklog(moment.state("deliveries"), filter.channel),
    count: letters.length,
    doubles: letters.filter(isDouble).length,
  };
}

/**
 * Dead letters of one channel that an operator is about to retry or discard: their number, and the fields of a form
 * that select them.
 */
export interface CountedLetters {
  readonly backlog: ChannelBacklog;
  readonly count: number;
  /** Number of dead letters whose retry may arrive twice. */
  readonly doubles: number;
  /** Fields of a form that select the dead letters. */
  readonly fields: Readonly<Record<string, string>>;
}

/**
 * Returns the choices to retry these dead letters: those that certainly did not arrive, or all. A choice states its
 * number of letters; the retry is refused if that number has changed. Empty if the channel is suspended.
 */
export function listRetries({ backlog, count, doubles, fields }: CountedLetters) {
  const { suspended, title, whyDouble } = backlog;
  const certain = count - doubles;
  const numbered = (expected: number) => ("all" in fields ? { ...fields, expected: String(expected) } : fields);
  const retry = (number: number) => `Retry ${grouped(number)}`;
  const ways = [
    {
      label: retry(certain),
      says: `None of them arrived at ${title}, so retrying cannot create duplicates. ${certain === 1 ? "It is" : "They are"} sent at once.`,
      fields: numbered(certain),
      isOffered: certain > 0,
    },
    {
      label: `${retry(count)}${certain === 0 ? "" : ", also those that may arrive twice"}`,
      says: `${grouped(doubles)} of ${grouped(count)} can create duplicates: ${whyDouble}.`,
      fields: { ...numbered(count), accept_doubles: "true" },
      isOffered: doubles > 0,
    },
  ];
  return suspended === null ? ways.filter(({ isOffered }) => isOffered) : [];
}
