import type { Recorded } from "../../events/event-types-and-codec.ts";
import { Value } from "@sinclair/typebox/value";
import { channelName, CHANNEL_NAMES, type ChannelName } from "../../events/channel-and-lane-names.ts";
import { listChannels, type Deliveries } from "../../projections/deliveries.ts";
import type { Failure, LetterPlace, LetterStatus } from "../../projections/dead-letters.ts";
import { normalizeDomain } from "../../projections/normalize-link.ts";
import { linkKey, toLinkKey } from "../../projections/link-keys-and-text-links.ts";
import { escapeControls } from "../platform/escape-control-characters.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { ServiceError, usageError } from "../platform/service-error.ts";
import { parseMoment, startOfDay } from "../projector/parse-moment.ts";

/** Filter of dead letters or dispatches in doubt, which must match all its members. */
export interface DispatchFilter {
  readonly channel?: ChannelName;
  readonly status: LetterStatus;
  readonly error?: string;
  /** Link whose clicks are selected (`domain/short_code`), or a domain, which selects all its links. */
  readonly link?: string;
  /**
   * First moment of the selection, in ms since 1970. Dispatches that ended earlier, given up or in doubt, are left out.
   */
  readonly from?: number;
  /**
   * Last moment of the selection, in ms since 1970. Dispatches that ended later, given up or in doubt, are left out.
   */
  readonly to?: number;
}

export const STATUSES = ["dead", "in_doubt"] as const satisfies readonly LetterStatus[];

/**
 * Ways in which a last attempt failed. Several may apply to one dead letter: a 503 answer is `5xx` and `503`, and
 * `exhausted` after the last attempt.
 */
const ERRORS = [
  ["refused", "the network refused it for good"],
  ["exhausted", "all attempts failed"],
  ["no_answer", "no answer came: no connection, or a timeout"],
  ["no_request", "no request was made"],
  ["5xx", "an HTTP status of this class, from 1xx to 5xx"],
  ["429", "this HTTP status"],
] as const;

export const ERROR_NAMES = ERRORS.map(([name]) => name);

/** Regular expression for each valid `error` of a filter. */
export const ERROR = "^(refused|exhausted|no_answer|no_request|[1-5]xx|[1-5][0-9][0-9])$";

/** Descriptions of the filter's members, without a full stop, for `--help` and the API's document. */
export const DISPATCH_FILTER_WORDS = {
  channel: "Only this channel, also webhook-NAME",
  status: "Dead letters, or dispatches in doubt",
  error: `Only those whose last attempt failed like this: ${ERRORS.map(([name, words]) => `${name} (${words})`).join(", ")}`,
  link: "Only clicks of this link (domain/short_code), or of this domain",
  from: "Only those given up, or in doubt, from this day or time on",
  to: "Only those given up, or in doubt, up to this day or time",
} as const;

export type FilterName = keyof typeof DISPATCH_FILTER_WORDS;
export const FILTER_NAMES = Object.keys(DISPATCH_FILTER_WORDS) as readonly FilterName[];

/** {@link DISPATCH_FILTER_WORDS} as sentences. */
export const FILTER_SENTENCES = Object.fromEntries(
  Object.entries(DISPATCH_FILTER_WORDS).map(([name, words]) => [name, `${words}.`]),
) as Readonly<Record<FilterName, string>>;

/** Filter of dead letters as the caller wrote it, before it is parsed. */
export type FilterTexts = { readonly [Name in FilterName]?: string | undefined };

/**
 * Parses a filter of dead letters; its days are days of `timezone`, an IANA name. Throws a ServiceError (usage) that
 * says what is wrong.
 */
export function parseDispatchFilter(texts: FilterTexts, timezone: string): DispatchFilter {
  const { channel, status: wanted = "dead", error } = texts;
  const from = texts.from === undefined ? undefined : parseTime(texts.from, timezone, startOfDay);
  const to = texts.to === undefined ? undefined : parseTime(texts.to, timezone);
  if (error !== undefined && !new RegExp(ERROR).test(error)) throw unknownValue("an error", ERROR_NAMES, error);
  if (from !== undefined && to !== undefined && to < from) throw usageError("the time range ends before it begins");
  const status = STATUSES.find((one) => one === wanted);
  if (status === undefined) throw unknownValue("a status", STATUSES, wanted);
  if (channel !== undefined && !Value.Check(channelName, channel))
    throw unknownValue("a channel", [...CHANNEL_NAMES, "webhook-NAME"], channel);
  const link = texts.link?.replace(/^https?:\/\//i, "");
  return { status, ...omitUndefined({ channel, error, link, from, to }) };
}

/** Returns the channel that the filter selects, or all channels of the log. */
export function selectedChannels({ channel }: DispatchFilter, deliveries: Deliveries) {
  return channel === undefined ? listChannels(deliveries) : [channel];
}

/** Parses a day or time to ms since 1970. A day stands for its end or, if `begin` is given, for its beginning. */
function parseTime(text: string, timezone: string, begin?: typeof startOfDay): number {
  const until = begin?.(text, timezone) ?? parseMoment(text, timezone).until;
  if (until === undefined) throw usageError(`a time range is between days or times, not positions such as ${text}`);
  return until.getTime();
}

function unknownValue(what: string, known: readonly string[], text: string): ServiceError {
  return usageError(`${what} is one of ${known.join(", ")}, not "${escapeControls(text.slice(0, 40))}"`);
}

/** True if a dead letter matches the filter's time and error. Does not compare the link, which only the event knows. */
export function matchesEnding({ error, from, to }: DispatchFilter, { at, failure }: LetterPlace): boolean {
  if (from !== undefined && at < from) return false;
  if (to !== undefined && at > to) return false;
  return error === undefined || hasError(failure, error);
}

function hasError({ refused, asked, status }: Failure, error: string): boolean {
  switch (error) {
    case "refused":
      return refused === true;
    case "exhausted":
      return refused === false;
    case "no_answer":
      return asked && status === undefined;
    case "no_request":
      return !asked;
    default:
      return status !== undefined && new RegExp(`^${error.replace("xx", "..")}$`).test(String(status));
  }
}

/** True if `event` is a click of this link (`domain/short_code`), or of a link of this domain. */
export function isClickOn(link: string, event: Recorded): boolean {
  if (event.type !== "LinkClicked") return false;
  const { data } = event;
  if (!link.includes("/")) return normalizeDomain(data.domain) === normalizeDomain(link);
  return linkKey(data.domain, data.short_code) === toLinkKey(link);
}
