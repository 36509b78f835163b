import { isWebhook, type ChannelName } from "../../events/channel-and-lane-names.ts";
import type { DispatchMode } from "../../events/delivery.ts";
import type { OutcomeType } from "../../events/dispatches-requested-by-events.ts";
import { VISITOR_IDS, type VisitorId, type VisitorIds } from "../../events/clicks-links-conversions.ts";
import { normalizeLink } from "../../projections/normalize-link.ts";
import { type NewEvent, eventAt, type StateContext } from "../log/event-log.ts";
import type { HeldLease } from "../log/leases-and-roles.ts";
import { FilterFailed } from "../networks/webhook-filter-expression.ts";
import type { Channel, Click, Conversion, Dispatch, DispatchResult, DigestLink } from "../networks/network.ts";
import { formatAmount } from "../platform/money.ts";
import { canonicalAddress } from "../platform/ip-address.ts";
import { errorFields, type LogFields, requestFields } from "../platform/logger.ts";
import type { Tracing } from "../tracing/tracing.ts";
import { type AttemptOutcome, decideAttemptOutcome } from "./attempt-outcome.ts";
import { isTest, type OutboxWindow, type PendingDispatch } from "./outbox-window.ts";
import type { Recorded, LogStore } from "../../events/event-types-and-codec.ts";
import type { Secret } from "../platform/secret.ts";

/**
 * Maximum time of one attempt to dispatch, in ms. Meta recommends 1.5 s, and chat services answer within a few seconds.
 */
export const ATTEMPT_TIMEOUT_MS = 5_000;

/** Age in ms at which a request for a channel test expires after a restart, because its caller no longer waits. */
const TEST_EXPIRES_MS = 60_000;

/** Context of one dispatcher: a log, the channel that it sends to, and the lease that gives it this channel. */
export interface ChannelContext extends StateContext, ChannelOptions {
  readonly channel: Channel;
  /** Lease that gives this instance alone the right to dispatch to the channel. */
  readonly lease: HeldLease;
}

/** Options of dispatchers that are the same for all channels of a log. */
export interface ChannelOptions {
  /** Counters of dispatches; default: none are counted. */
  readonly metrics?: DispatchMetrics | undefined;
  /** Traces of requests to networks; default: none. */
  readonly tracing?: DispatchTracing | undefined;
  /**
   * Hash function of {@link createCredentialHash}. It shows if a suspended channel still has the credential that the
   * network refused.
   */
  readonly hashCredential: (credential: Secret) => string;
  /**
   * True if another instance may take over the channel. Dispatches must then be recorded before they are sent, because
   * the next holder might repeat them otherwise.
   */
  readonly isShared: boolean;
}

/** Starts spans for the requests to networks, so that a trace shows them. */
export interface DispatchTracing {
  readonly dispatch: Tracing["dispatch"];
}

export interface DispatchMetrics {
  /** Counts a request to the network that took `ms`. */
  asked(channel: ChannelName, ms: number): void;
  /** Counts dispatches whose outcome, of the given type, is in the log. */
  recorded(channel: ChannelName, type: OutcomeType, dispatches: number): void;
}

/**
 * Function called with the network's answers before their outcomes are recorded. The events that it returns are
 * recorded with the outcomes.
 */
export type Learn = (results: readonly DispatchResult[], items: readonly PendingDispatch[]) => readonly NewEvent[];

interface AskOptions {
  readonly mode: DispatchMode;
  readonly learn: Learn;
  /** Signal that aborts when a batch must make no further request. */
  readonly stopping: AbortSignal;
}

/**
 * Time in ms until the next try of dispatches for which no request was made: their batch was stopped first, or this
 * instance's lease for the channel was about to expire.
 */
const UNASKED_WAIT_MS = 1_000;

/**
 * Makes one attempt at each dispatch without an outcome: asks the network, and keeps the outcome in the item's
 * `unrecorded`. Resolves with further events for the recorder to append. Rejects if the log cannot be read.
 */
export async function ask(
  context: ChannelContext,
  lane: OutboxWindow,
  pending: readonly PendingDispatch[],
  { mode, learn, stopping }: AskOptions,
): Promise<readonly NewEvent[]> {
  // Dispatches whose outcome the log refused are not sent again, because the network may have received them.
  const unsent = pending.filter(({ unrecorded }) => unrecorded === undefined);
  const startedAt = context.clock();
  const loading = load(context, unsent, startedAt);
  const { items, dispatches } = loading instanceof Promise ? await loading : loading;
  if (items.length === 0) return [];
  const digest = mode === "digest" ? context.makeId() : undefined;
  const { name, network } = context.channel;
  const span = context.tracing?.dispatch(
    { channel: name, network, mode },
    items.map(({ event }) => event.meta.traceparent),
  );
  const results = await send(context, dispatches, { items, startedAt, mode, digest, stopping });
  span?.end(results.map(({ outcome }) => outcome));
  const now = context.clock();
  context.metrics?.asked(name, now - startedAt);
  // Dispatches of one request share a random number, so that they are also retried together.
  const common = { lane: lane.name, mode, digest, latencyMs: now - startedAt, now, random: context.random() };
  for (const [at, item] of items.entries()) {
    const result = results[at] ?? UNANSWERED;
    if (result.outcome === "retryable" && result.unasked === true) {
      lane.wait(item, now + (result.retryAfterMs ?? UNASKED_WAIT_MS));
      continue;
    }
    const about = { isTest: isTest(item), number: item.attempts + 1, uncertainSince: lane.uncertainSince(item) };
    item.unrecorded = decideAttemptOutcome({ ...common, ...about }, result);
  }
  return learn(results, items);
}

type Loaded = ReturnType<typeof keepSendable>;

/**
 * Loads what the dispatches send. Returns a promise only if a read must be awaited, which is rare: a promise for each
 * dispatch costs more than the read.
 */
function load(context: ChannelContext, pending: readonly PendingDispatch[], now: number): Loaded | Promise<Loaded> {
  const found = pending.map((item) =>
    isTest(item) && now - Date.parse(item.event.time) > TEST_EXPIRES_MS
      ? undefined
      : toDispatch(context.eventLog.store, item.event, context.channel.name),
  );
  const known = found.filter((one): one is Dispatch | undefined => !(one instanceof Promise));
  if (known.length === found.length) return keepSendable(context.channel, pending, known);
  return Promise.all(found.map(async (one) => one)).then((all) => keepSendable(context.channel, pending, all));
}

/**
 * Keeps the dispatches for which a request is made. Dispatches that have expired, or that the channel's filter
 * excludes, get their outcome without a request.
 */
function keepSendable(channel: Channel, pending: readonly PendingDispatch[], found: readonly (Dispatch | undefined)[]) {
  const items: PendingDispatch[] = [];
  const dispatches: Dispatch[] = [];
  for (const [at, item] of pending.entries()) {
    const dispatch = found[at];
    if (dispatch === undefined) {
      item.unrecorded = { type: "DispatchSkipped", request: { attempt: item.attempts + 1, reason: "expired" } };
      continue;
    }
    // The channel's filter already screened the events that the dispatcher read from the log. If an operator retries an
    // older event, that event was loaded only now, so the filter screens it here.
    const isRetried = dispatch.kind === "event" && dispatch.event !== item.event;
    const screened = isRetried ? screen(channel, dispatch.event, item) : undefined;
    if (screened !== undefined) {
      item.unrecorded = screened;
      continue;
    }
    items.push(item);
    dispatches.push(dispatch);
  }
  return { items, dispatches };
}

/**
 * Screens an event with the channel's filter. Returns the outcome if it must not be posted, else undefined. If the
 * filter fails, the event becomes a dead letter: neither lost nor posted by mistake.
 */
export function screen(
  { filter }: Channel,
  event: Recorded,
  { attempts }: PendingDispatch,
): AttemptOutcome | undefined {
  if (filter === undefined) return undefined;
  const attempt = attempts + 1;
  try {
    return filter(event) ? undefined : { type: "DispatchSkipped", request: { attempt, reason: "filtered" } };
  } catch (fault) {
    if (!(fault instanceof FilterFailed)) throw fault;
    const detail = `the filter fails on it: ${fault.message}`;
    return { type: "DispatchAbandoned", request: { attempt, detail, refused: true } };
  }
}

/** Result of a dispatch if the channel returned none for it, because of a defect in the channel's code. */
const UNANSWERED: DispatchResult = { outcome: "in_doubt", detail: "the channel gave no result for it" };

/**
 * Result of a dispatch that was not sent because this instance's lease for the channel has expired or is about to. The
 * dispatch waits until the lease is renewed.
 */
const NOT_OURS: DispatchResult = {
  outcome: "retryable",
  detail: "another instance may have the channel by now",
  unasked: true,
};

const WEIGHTS = { skipped: 0, delivered: 1, refused: 2, in_doubt: 3, retryable: 4 } as const;
const WEIGHT_OF_CHANNEL = 5;

/**
 * Returns the one result of a batch that tells the most about the state of the channel, such as a refusal of the
 * channel.
 */
export function weightiestResult(results: readonly DispatchResult[]): DispatchResult {
  const weight = (result: DispatchResult): number => {
    return result.outcome === "refused" && result.channel ? WEIGHT_OF_CHANNEL : WEIGHTS[result.outcome];
  };
  return results.reduce((one, other) => (weight(other) > weight(one) ? other : one), results[0] ?? UNANSWERED);
}

interface Sending {
  readonly items: readonly PendingDispatch[];
  readonly startedAt: number;
  readonly mode: DispatchMode;
  readonly digest: string | undefined;
  readonly stopping: AbortSignal;
}

async function send(
  { channel, lease, logger }: ChannelContext,
  dispatches: readonly Dispatch[],
  { items, startedAt, mode, digest, stopping }: Sending,
): Promise<readonly DispatchResult[]> {
  // True if the lease outlasts a request. A network knows no fencing tokens, so each request must end before another
  // instance may send the same.
  const isOurs = (): boolean => lease.lasts(ATTEMPT_TIMEOUT_MS);
  const goesOn = (): boolean => !stopping.aborted && isOurs();
  const options = { timeoutMs: ATTEMPT_TIMEOUT_MS, now: startedAt, goesOn };
  if (!isOurs()) return dispatches.map(() => NOT_OURS);
  try {
    if (mode === "batch" && channel.batch !== undefined)
      return await channel.batch.send(keepForAds(dispatches), options);
    const single = digest === undefined ? dispatches[0] : toDigest(digest, keepClicks(dispatches));
    if (single === undefined) return [];
    const result = await channel.send(single, options);
    return dispatches.map(() => result);
  } catch (fault) {
    // A defect in the channel's code. The request may have reached the network, and a repeat would fail again, so the
    // dispatches are in doubt.
    logger.error("a channel failed on an internal error", {
      channel: channel.name,
      ...describeCauses(items),
      ...errorFields(fault),
    });
    return dispatches.map(() => ({ outcome: "in_doubt", detail: "a fault inside reachlog; its log has more" }));
  }
}

function keepForAds(dispatches: readonly Dispatch[]): readonly (Click | Conversion)[] {
  return dispatches.filter(({ kind }) => kind === "click" || kind === "conversion") as readonly (Click | Conversion)[];
}

function keepClicks(dispatches: readonly Dispatch[]): readonly Click[] {
  return dispatches.filter((dispatch) => dispatch.kind === "click");
}

/**
 * Maximum number of dispatches that a log line names. A batch may have a thousand; the others have positions near the
 * named ones.
 */
const NAMED_MAX = 10;

/** Describes, for a log line, at which positions these dispatches were requested, and by which HTTP requests. */
export function describeCauses(items: readonly PendingDispatch[]): LogFields {
  const named = items
    .slice(0, NAMED_MAX)
    .map(({ event: { position, meta } }) => ({ position, ...requestFields(meta) }));
  const all = (field: "position" | "request_id" | "trace_id"): string | undefined => {
    const values = new Set(named.flatMap((one) => one[field] ?? []));
    return values.size === 0 ? undefined : [...values].join(" ");
  };
  return {
    dispatches: items.length,
    positions: all("position"),
    request_id: all("request_id"),
    trace_id: all("trace_id"),
  };
}

/** Cache of clicks in the form that networks receive, made once for all channels. */
const clicks = new WeakMap<Recorded, Click>();

/**
 * Returns what is sent for an event; undefined if its personal data was erased. For a retry, it is the event that the
 * retry repeats. A webhook gets all events as they are, also tests and erased ones.
 */
export function toDispatch(
  store: LogStore,
  event: Recorded,
  channel: ChannelName,
): Dispatch | undefined | Promise<Dispatch | undefined> {
  if (event.type === "DispatchRetryRequested" && event.data.channel === channel) {
    return eventAt(store, event.data.source)
      .then((source) => toDispatch(store, source, channel))
      .then((dispatch) => dispatch && { ...dispatch, retryId: event.id });
  }
  if (isWebhook(channel)) return { kind: "event", id: event.id, time: event.time, event };
  if (event.meta.erased === true) return undefined;
  const { id, time } = event;
  switch (event.type) {
    case "LinkClicked":
      return clicks.get(event) ?? toClick(event);
    case "ConversionRecorded":
      return toConversion(store, event);
    case "NotificationRequested":
      return { kind: "notification", id, time, ...event.data };
    case "MessageRequested":
      return { kind: "message", id, time, text: event.data.text };
    case "ChannelTestRequested":
      return { kind: "test", id, time };
    default:
      throw new Error(`${event.type} requests no dispatch`);
  }
}

function toClick(event: Recorded<"LinkClicked">): Click {
  const { id, time, data } = event;
  const { original_url: originalUrl, user_agent: userAgent, bot } = data;
  const { normalized_url: normalizedUrl = originalUrl } = data;
  const click: Click = {
    kind: "click",
    id,
    time,
    event: data.event,
    // Normalizes the link, because older versions recorded clicks with any spelling of it.
    ...normalizeLink(data.domain, data.short_code),
    originalUrl,
    normalizedUrl,
    ip: data.ip === undefined ? undefined : canonicalAddress(data.ip),
    userAgent,
    ...pickVisitorIds(data),
    bot,
  };
  clicks.set(event, click);
  return click;
}

/** Converts a conversion for a network, with the visitor of its click. Undefined if the click was erased. */
async function toConversion(
  store: LogStore,
  { id, data }: Recorded<"ConversionRecorded">,
): Promise<Conversion | undefined> {
  const { name, value, currency, occurred_at: time, external_id = id } = data;
  const click = data.click === undefined ? undefined : await eventAt(store, data.click);
  if (click?.type !== "LinkClicked" || click.meta.erased === true) return undefined;
  const decimal = value === undefined || currency === undefined ? undefined : formatAmount(value, currency);
  return { kind: "conversion", id: external_id, time, name, value: decimal, currency, click: toClick(click) };
}

/** Returns the identifiers of a click's visitor as a member of the dispatch; usually there are none. */
function pickVisitorIds(data: VisitorIds): { readonly ids?: VisitorIds } {
  const names = VISITOR_IDS.filter((name) => data[name] !== undefined);
  if (names.length === 0) return {};
  return { ids: Object.fromEntries(names.map((name) => [name, data[name]])) as Partial<Record<VisitorId, string>> };
}

/**
 * Combines clicks into one message, grouped by link, the most clicked first (pure). `clicks` is in the order of the log
 * and not empty.
 */
export function toDigest(id: string, clicks: readonly Click[]): Dispatch {
  const links = new Map<string, DigestLink>();
  for (const { domain, shortCode, bot, time } of clicks) {
    const key = `${domain}/${shortCode}`;
    const link = links.get(key);
    const counted = { clicks: (link?.clicks ?? 0) + 1, bots: (link?.bots ?? 0) + (bot ? 1 : 0) };
    links.set(key, { domain, shortCode, ...counted, first: link?.first ?? time, last: time });
  }
  return {
    kind: "digest",
    id,
    time: clicks.at(-1)?.time ?? "",
    clicks: clicks.length,
    bots: clicks.filter(({ bot }) => bot).length,
    links: [...links.values()].sort((one, other) => other.clicks - one.clicks),
  };
}
