import { Type, type Static } from "@sinclair/typebox";
import { channelName, type ChannelName } from "../../events/channel-and-lane-names.ts";
import type { LetterStatus } from "../../projections/dead-letters.ts";
import { findChannel, listChannels, pendingOf, type Suspended } from "../../projections/deliveries.ts";
import { eventJson, toEventJson } from "../history/event-json.ts";
import { EVENT_NAME } from "../history/find-event.ts";
import { quoteText } from "../history/sentences/sentence-parts.ts";
import type { StateContext } from "../log/event-log.ts";
import { count, named, oneOf, orNull, text, time } from "../platform/common-schemas.ts";
import { countInWords, formatDuration } from "../platform/format-numbers-and-lists.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { operation, pageInput, refusal, refuse, type Disclosure } from "../platform/operation.ts";
import {
  asOf,
  asOfInput,
  describeMomentJson,
  resolveEnd,
  toMomentJson,
  type LogReader,
} from "../projector/operation-states-as-of.ts";
import { DISPATCH_ATTEMPTS_MAX } from "./attempt-outcome.ts";
import { findDispatchHistories, toDispatchStatus, type DispatchStatus } from "./dispatch-status.ts";
import { findLetters } from "./find-and-decide-dead-letters.ts";
import { selectedChannels, STATUSES } from "./dead-letter-filter.ts";
import { channelInput, filterInput, filterRefusals, readFilter, type FilterContext } from "./letter-filter-input.ts";
import { drainInWords } from "./channel-backlog-and-undelivered.ts";
import { measureLags, RATE_MS } from "./channel-lag.ts";
import { DISPATCHES_LISTED, formatCursor, parseCursor, readDispatchPage, toDispatchJson } from "./undelivered-pages.ts";
import { resumeChannel } from "./suspend-channel-and-alert-operator.ts";

/** Maximum number of dispatches in one response. */
const DISPATCHES_LISTED_MAX = 500;

const dispatch = Type.Object({
  event_id: text("01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11"),
  channel: channelName,
  status: oneOf(...STATUSES),
  link: orNull(text("go.example/welcome")),
  attempts: count,
  refused: orNull(Type.Boolean({ description: "False: all attempts failed. Null: in doubt." })),
  http_status: orNull(Type.Integer({ examples: [503] })),
  detail: text("no answer in time"),
  doubtful_since: orNull(time),
  ended_at: time,
  source: Type.Integer({ description: "Position of the event that requested it." }),
  position: Type.Integer({ description: "Position of the event that gave it up, or left it in doubt." }),
});

export const listDeliveries = operation({
  name: "deliveries list",
  id: "listDeliveries",
  tag: "tracking",
  access: ["session", "read"],
  summary: "List dead letters, or dispatches in doubt.",
  description: `The newest first, ${DISPATCHES_LISTED} a page. Those that were retried, discarded or settled are not listed.`,
  personalRead: false,
  input: {
    ...filterInput,
    ...pageInput(DISPATCHES_LISTED, DISPATCHES_LISTED_MAX),
    after: Type.Optional(
      Type.String({
        title: "place",
        pattern: String.raw`^\d{1,15}-\d{1,15}$`,
        description: "Only what follows: the `next` of an answer",
        examples: ["86-12"],
      }),
    ),
  },
  output: {
    count: Type.Integer({ minimum: 0, description: "How many match, on all pages." }),
    until_position: Type.Integer({
      minimum: 0,
      description: "Dispatches up to this position of the log were counted.",
    }),
    dispatches: Type.Array(dispatch),
    next: orNull(text("86-12")),
  },
  list: "dispatches",
  refusals: filterRefusals,
  isSlow: true,
  async run({ store, at, config }: LogReader & FilterContext, { limit = DISPATCHES_LISTED, after, ...texts }) {
    const { states, position } = await at(undefined, "deliveries");
    const { deliveries } = states;
    const filter = readFilter(texts, { config }, listChannels(deliveries));
    if ("refusal" in filter) return filter;
    const letters = await findLetters(store, { deliveries, position }, filter);
    const cursor = after === undefined ? undefined : parseCursor(after);
    const { dispatches, next } = await readDispatchPage(store, letters, cursor, limit);
    return {
      count: letters.length,
      until_position: position,
      dispatches: dispatches.map(toDispatchJson),
      next: next === undefined ? null : formatCursor(next),
    };
  },
  table({ dispatches }, { status }) {
    const rows = dispatches.map(({ event_id, channel: name, attempts, ended_at, ...rest }) => {
      const { http_status, detail, doubtful_since } = rest;
      const why = http_status === null ? detail : `${http_status}: ${detail}`;
      return [event_id, name, attempts, ended_at, doubtful_since === null ? why : `${why}; may have arrived`];
    });
    return { head: ["event", "channel", "tries", status === "in_doubt" ? "in doubt since" : "given up", "why"], rows };
  },
  text({ count: all, next, until_position }, { status }) {
    const more = next === null ? "" : `; --after ${next} lists more`;
    const number = nameNumber(all, status === "in_doubt" ? "in_doubt" : "dead");
    return `(${number}${more}; as of position ${until_position})\n`;
  },
  examples: ["--channel chat --error 5xx", "--status in_doubt --from 2026-11-20"],
});

/** Writes a number of dispatches in words, such as `1 dead letter` or `312 dispatches in doubt`. */
export function nameNumber(number: number, status: LetterStatus): string {
  if (status === "dead") return countInWords(number, "dead letter");
  return `${countInWords(number, "dispatch", "dispatches")} in doubt`;
}

const configured = Type.Boolean({ description: "True if the channel has credentials here." });

const suspension = named(
  "Suspension",
  Type.Object({ since: time, network: text("slack"), detail: text("channel_is_archived") }),
);

const channelJson = Type.Object({
  channel: channelName,
  configured,
  pending: count,
  dispatched: Type.Integer({ minimum: 0, description: "Delivered." }),
  skipped: count,
  in_doubt: count,
  dead: count,
  suspended: orNull(suspension),
});

interface ChannelReader extends LogReader {
  /** Channels for which this process has credentials. */
  readonly configured: readonly ChannelName[];
  /**
   * Maximum number of events read for one figure of a channel. Default: as many as a rate needs; no limit for the
   * oldest click.
   */
  readonly eventsMax?: number;
}

export const listDeliveryChannels = operation({
  name: "deliveries channels",
  id: "listDeliveryChannels",
  tag: "tracking",
  access: ["session", "read"],
  summary: "Show what is pending, suspended and dead on each channel.",
  description: "With the reason why a channel is suspended. reachlog deliveries lag shows rates and ages.",
  personalRead: false,
  input: asOfInput,
  output: { channels: Type.Array(channelJson), ...asOf },
  async run({ at, configured: names }: ChannelReader, { as_of }) {
    const found = await at(as_of, "deliveries");
    const { deliveries } = found.states;
    const channels = listChannels(deliveries).map((name) => {
      const state = findChannel(deliveries, name);
      const { dispatched, skipped, in_doubt, dead, suspended } = state;
      const counts = { pending: pendingOf(state), dispatched, skipped, in_doubt, dead };
      return { channel: name, configured: names.includes(name), ...counts, suspended: toSuspensionJson(suspended) };
    });
    return { channels, as_of: toMomentJson(found) };
  },
  table: ({ channels }) => ({
    head: ["channel", "pending", "delivered", "skipped", "in doubt", "dead", "state"],
    rows: channels.map((one) => {
      const { channel: name, pending, dispatched, skipped, in_doubt, dead } = one;
      return [name, pending, dispatched, skipped, in_doubt, dead, describeState(one)];
    }),
  }),
  text: ({ as_of }) => `(${describeMomentJson(as_of)})\n`,
  examples: ["--json"],
});

/** Shows a channel's suspension, without the hash of the credential. */
function toSuspensionJson(suspended: Suspended | null): Static<typeof suspension> | null {
  return suspended && { since: suspended.since, network: suspended.network, detail: suspended.detail };
}

function describeState({ configured: isConfigured, pending, suspended }: Static<typeof channelJson>): string {
  if (!isConfigured && pending > 0) return "not configured here: pending dispatches wait until it is";
  if (suspended === null) return "";
  return `suspended since ${suspended.since}: ${suspended.network} refuses the whole channel, ${suspended.detail}`;
}

const perMinute = (description: string) => Type.Number({ minimum: 0, description, examples: [12.5] });

const lag = Type.Object({
  channel: channelName,
  backlog: Type.Integer({ minimum: 0, description: "Pending dispatches." }),
  oldest_click_seconds: orNull(
    Type.Integer({ minimum: 0, description: "Age of the oldest pending click; of a webhook, of the oldest event." }),
  ),
  settled_per_minute: perMinute("Dispatches that were completed."),
  requested_per_minute: perMinute("Dispatches that were requested."),
  drained_in_seconds: orNull(
    Type.Integer({ minimum: 0, description: "Until nothing is pending. Null: the backlog does not shrink." }),
  ),
  failures_in_a_row: count,
  suspended: orNull(suspension),
  configured,
});

export const readDeliveryLag = operation({
  name: "deliveries lag",
  id: "readDeliveryLag",
  tag: "tracking",
  access: ["session", "read"],
  summary: "Show how far each channel is behind.",
  description: `The pending dispatches, the age of the oldest pending click, and how many dispatches were completed and requested a minute in the last ${formatDuration(RATE_MS / 1_000)}. The time until the pending ones have ended follows from that rate.`,
  personalRead: false,
  input: { channel: filterInput.channel },
  output: { channels: Type.Array(lag), ...asOf },
  refusals: filterRefusals,
  isRepeatable: true,
  async run({ store, clock, at, configured: names, config, eventsMax }: ChannelReader & FilterContext, { channel }) {
    const found = await at(undefined, "deliveries");
    const { deliveries } = found.states;
    const filter = readFilter({ channel }, { config }, listChannels(deliveries));
    if ("refusal" in filter) return filter;
    const isConfigured = (name: ChannelName) => names.includes(name);
    const sources = {
      store,
      deliveries: () => deliveries,
      isConfigured,
      tail: omitUndefined({ to: found.position, eventsMax }),
    };
    const channels = await measureLags(sources, selectedChannels(filter, deliveries), resolveEnd(found, clock()));
    return { channels: [...channels], as_of: toMomentJson(found) };
  },
  table: ({ channels }) => ({
    head: ["channel", "backlog", "oldest click", "settled/min", "requested/min", "drained in", "state"],
    rows: channels.map((one) => [
      one.channel,
      one.backlog,
      one.oldest_click_seconds === null ? "" : formatDuration(one.oldest_click_seconds),
      one.settled_per_minute,
      one.requested_per_minute,
      drainInWords(one),
      describeLag(one),
    ]),
  }),
  text: ({ as_of }) => `(${describeMomentJson(as_of)})\n`,
  examples: ["--watch", "--channel webhook-crm"],
});

function describeLag({
  configured: isConfigured,
  backlog,
  suspended,
  failures_in_a_row: failures,
}: Static<typeof lag>) {
  if (!isConfigured && backlog > 0) return "not configured here";
  if (suspended !== null) return `suspended since ${suspended.since}`;
  return failures === 0 ? "" : `the last ${failures === 1 ? "attempt" : `${failures} attempts`} failed`;
}

/** Maximum number of dispatches of one event that are shown: a few screens. */
const SHOWN_DISPATCHES_MAX = 20;

const shownChannel = Type.Object({
  channel: channelName,
  status: oneOf("waiting", "delivered", "skipped", "in_doubt", "dead", "discarded", "left", "lost"),
  attempts: orNull(Type.Integer({ minimum: 0, description: "Attempts so far. Null: it no longer waits." })),
  retry_at: orNull(time),
  configured,
  suspended: orNull(suspension),
  events: Type.Array(eventJson, { description: "Its attempts, and what operators decided." }),
});

const shownDispatch = Type.Object({ source: eventJson, channels: Type.Array(shownChannel) });

export const showDelivery = operation({
  name: "deliveries show",
  id: "showDelivery",
  tag: "tracking",
  access: ["session", "read"],
  summary: "Show one dispatch from its beginning.",
  description: `What requested it, every attempt on each channel, what an operator decided, its status, and when the next attempt is. For an event about many dispatches, the first ${SHOWN_DISPATCHES_MAX} are shown.`,
  personalRead: "deliveries",
  input: {
    event_id: Type.String({
      pattern: EVENT_NAME,
      description: "The id or position of what requested it, or of any event of the dispatch",
      examples: ["01a1fd59-3b3a-7515-964c-67ff53c10ed1"],
    }),
    channel: filterInput.channel,
  },
  positional: ["event_id"],
  output: { dispatches: Type.Array(shownDispatch, { maxItems: SHOWN_DISPATCHES_MAX }) },
  refusals: {
    ...filterRefusals,
    unknown_event: refusal("not_found", "The log has no event {event_id}."),
    no_dispatch: refusal("not_found", "The event requests no dispatch, or none to this channel."),
  },
  isSlow: true,
  async run({ store, at, configured: names, config }: ChannelReader & FilterContext, { event_id, channel }) {
    const { states, position: to } = await at(undefined, "deliveries");
    const { deliveries } = states;
    const filter = readFilter({ channel }, { config }, listChannels(deliveries));
    if ("refusal" in filter) return filter;
    const wanted = filter.channel && [filter.channel];
    const reading = { store, to, onProgress: () => {} };
    const limits = { wanted, limit: SHOWN_DISPATCHES_MAX };
    const found = await findDispatchHistories(reading, event_id.toLowerCase(), limits);
    if (found === undefined) return refuse("unknown_event", { event_id });
    if (found.every(({ channels }) => channels.size === 0)) return "no_dispatch";
    const dispatches = found.map(({ source, channels, requested }) => ({
      source: toEventJson(source, requested),
      channels: [...channels].map(([name, events]) => ({
        channel: name,
        ...toStatusJson(toDispatchStatus(events)),
        configured: names.includes(name),
        suspended: toSuspensionJson(findChannel(deliveries, name).suspended),
        events: events.map((event) => toEventJson(event, requested)),
      })),
    }));
    return { dispatches };
  },
  discloses({ dispatches: [one, ...others] }) {
    const { recipient } = (one?.source.data ?? {}) as Disclosure;
    const isAboutOne = others.length === 0 && (recipient?.id ?? recipient?.username) !== undefined;
    return { ...(isAboutOne ? { recipient } : {}), records: others.length + 1 };
  },
  text: ({ dispatches }) => dispatches.map(describeDispatch).join("\n"),
  examples: ["43", "01a1fd59-3b3a-7515-964c-67ff53c10ed1"],
});

function toStatusJson(current: DispatchStatus) {
  if (current.status !== "waiting") return { status: current.status, attempts: null, retry_at: null };
  const { status, attempts, retry_at = null } = current;
  return { status, attempts, retry_at };
}

function describeDispatch({ source, channels }: Static<typeof shownDispatch>): string {
  const line = ({ position, time: at, words }: Static<typeof eventJson>) => `${position} ${at} ${words}\n`;
  const shown = channels.map((on) => {
    const events = on.events.map((event) => `  ${line(event)}`);
    return `\n${on.channel}: ${describeStatus(on, source.id)}\n${events.join("")}`;
  });
  return `${line(source)}${shown.join("")}`;
}

/** Describes the status of a dispatch on a channel. `id`: that of the event that the dispatch sends. */
function describeStatus(on: Static<typeof shownChannel>, id: string): string {
  if (on.status === "waiting") return `waits${describeWait(on)}`;
  return {
    delivered: "delivered",
    skipped: "not sent, and never will be",
    in_doubt:
      `in doubt, not retried automatically: send it again with reachlog deliveries retry ${id} --status in_doubt ` +
      `--accept-doubles, or close it with reachlog deliveries settle ${id}`,
    dead: `a dead letter: send it with reachlog deliveries retry ${id}, or drop it with discard`,
    discarded: "discarded; never sent again",
    left: "in doubt, and an operator left it so; never sent again",
    lost: "accepted by the network, which lost it afterwards; never sent again",
  }[on.status];
}

function describeWait({
  attempts,
  retry_at,
  configured: isConfigured,
  suspended,
}: Static<typeof shownChannel>): string {
  if (!isConfigured) return ": the channel is not configured here";
  if (suspended !== null) return `: the channel is suspended since ${suspended.since}, ${quoteText(suspended.detail)}`;
  if (retry_at === null) return " for its first attempt";
  return `: attempt ${(attempts ?? 0) + 1} of ${DISPATCH_ATTEMPTS_MAX} is due at ${retry_at}`;
}

export const resumeDeliveries = operation({
  name: "deliveries resume",
  id: "resumeDeliveries",
  tag: "tracking",
  access: ["token", "admin"],
  summary: "Resume a suspended channel.",
  description:
    "A running service sends pending dispatches at once, and suspends the channel again if the network still refuses it.",
  personalRead: false,
  input: { channel: channelInput("The channel, also webhook-NAME") },
  positional: ["channel"],
  output: { channel: channelName, suspended_since: time },
  refusals: { not_suspended: refusal("conflict", "The {channel} channel is not suspended.") },
  async run(context: StateContext, { channel }, caller) {
    const ended = await resumeChannel(context, channel, caller);
    if (ended.kind === "not_suspended") return refuse("not_suspended", { channel });
    return { channel, suspended_since: ended.since };
  },
  text: ({ channel, suspended_since: since }) => `${channel} is resumed. It had been suspended since ${since}.`,
  examples: ["chat"],
});
