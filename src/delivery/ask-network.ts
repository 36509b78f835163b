import { isWebhook, type ChannelName } from "../../events/channel.ts";
import type { DispatchMode } from "../../events/delivery.ts";
import type { OutcomeType } from "../../events/dispatches.ts";
import { normalizeLink } from "../../projections/link-address.ts";
import { type NewEvent, eventAt, type PartDeps } from "../log/event-log.ts";
import type { HeldLease } from "../log/lease.ts";
import { FilterFailed } from "../networks/event-filter.ts";
import type { Channel, Click, Dispatch, DispatchResult, DigestLink } from "../networks/network.ts";
import { canonicalAddress } from "../platform/ip-address.ts";
import { errorFields, type LogFields, requestFields } from "../platform/logger.ts";
import type { Tracing } from "../tracing/tracing.ts";
import { type AttemptOutcome, decideAttemptOutcome } from "./attempt-outcome.ts";
import { isTest, type OutboxWindow, type PendingDispatch } from "./outbox-window.ts";
import type { Recorded, LogStore } from "../../events/catalog.ts";

/** One attempt's total deadline; Meta recommends 1.5 s, chat services answer within a few seconds. */
export const ATTEMPT_TIMEOUT_MS = 5_000;

/** A test request that is older than this after a restart expires, because its caller no longer waits. */
const TEST_EXPIRES_MS = 60_000;

export interface DispatchDeps extends Pick<
  PartDeps,
  "eventLog" | "projector" | "clock" | "logger" | "makeId" | "random"
> {
  readonly channel: Channel;
  /** The right to dispatch to the channel. */
  readonly lease: HeldLease;
  /** Default: not counted. */
  readonly metrics?: DispatchMetrics | undefined;
  /** Default: no traces. */
  readonly tracing?: Pick<Tracing, "dispatch"> | undefined;
  /** Aborts when a batch is to make no further request. */
  readonly stopping: AbortSignal;
}

export interface DispatchMetrics {
  /** Counts a request to the network that took `ms`. */
  asked(channel: ChannelName, ms: number): void;
  /** Counts dispatches whose outcome of that type is in the log. */
  recorded(channel: ChannelName, type: OutcomeType, dispatches: number): void;
}

/** Called with the answers before their outcomes are recorded; the events that it returns are recorded with them. */
export type Learn = (results: readonly DispatchResult[], items: readonly PendingDispatch[]) => readonly NewEvent[];

/** How long items wait that a batch did not reach. */
const UNASKED_WAIT_MS = 1_000;

/**
 * Makes one attempt at each item without an outcome: asks the network and leaves the outcome with the item for the
 * recorder. Resolves with further events to record with the outcomes. Rejects if it could not ask.
 */
export async function ask(
  deps: DispatchDeps,
  lane: OutboxWindow,
  pending: readonly PendingDispatch[],
  { mode, learn }: { readonly mode: DispatchMode; readonly learn: Learn },
): Promise<readonly NewEvent[]> {
  // Items whose outcome the log refused are not sent again, because they may have arrived.
  const unsent = pending.filter(({ unrecorded }) => unrecorded === undefined);
  const startedAt = deps.clock();
  const loading = load(deps, unsent, startedAt);
  const { items, dispatches } = loading instanceof Promise ? await loading : loading;
  if (items.length === 0) return [];
  const digest = mode === "digest" ? deps.makeId() : undefined;
  const { name, network } = deps.channel;
  const span = deps.tracing?.dispatch(
    { channel: name, network, mode },
    items.map(({ event }) => event.meta.traceparent),
  );
  const results = await send(deps, dispatches, { items, startedAt, mode, digest });
  span?.end(results.map(({ outcome }) => outcome));
  const now = deps.clock();
  deps.metrics?.asked(name, now - startedAt);
  // One random number for all, so that dispatches sent together are retried together.
  const common = { lane: lane.name, mode, digest, latencyMs: now - startedAt, now, random: deps.random() };
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
 * Returns a promise only if a read must be awaited, which is rare: a promise for each dispatch costs more than the
 * read.
 */
function load(deps: DispatchDeps, pending: readonly PendingDispatch[], now: number): Loaded | Promise<Loaded> {
  const found = pending.map((item) =>
    isTest(item) && now - Date.parse(item.event.time) > TEST_EXPIRES_MS
      ? undefined
      : toDispatch(deps.eventLog.store, item.event, deps.channel.name),
  );
  const known = found.filter((one): one is Dispatch | undefined => !(one instanceof Promise));
  if (known.length === found.length) return keepSendable(deps.channel, pending, known);
  return Promise.all(found.map(async (one) => one)).then((all) => keepSendable(deps.channel, pending, all));
}

/**
 * Keeps the dispatches that have something to send. The others have expired or are screened, which is their outcome.
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
    // The window screened the events themselves; the event of a retry is known only here.
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
 * Returns the outcome of an event that is not posted, or undefined if it is posted. An event on which the filter fails
 * becomes a dead letter, so that it is neither lost nor posted by mistake.
 */
export function screen(
  { filter }: Pick<Channel, "filter">,
  event: Recorded,
  { attempts }: Pick<PendingDispatch, "attempts">,
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

/** The result of a click for which the channel returned none, which is a defect. */
const UNANSWERED: DispatchResult = { outcome: "in_doubt", detail: "the channel gave no result for it" };

/** The lease has expired or is about to, so the dispatch waits until the lease is renewed. */
const NOT_OURS: DispatchResult = {
  outcome: "retryable",
  detail: "another instance may have the channel by now",
  unasked: true,
};

const WEIGHTS = { skipped: 0, delivered: 1, refused: 2, in_doubt: 3, retryable: 4 } as const;
const WEIGHT_OF_CHANNEL = 5;

/** Returns the result of a batch that says most about the channel. */
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
}

async function send(
  { channel, lease, logger, stopping }: DispatchDeps,
  dispatches: readonly Dispatch[],
  { items, startedAt, mode, digest }: Sending,
): Promise<readonly DispatchResult[]> {
  // The network cannot be fenced, so each request must end before another instance may send the same.
  const isOurs = (): boolean => lease.lasts(ATTEMPT_TIMEOUT_MS);
  const goesOn = (): boolean => !stopping.aborted && isOurs();
  const options = { timeoutMs: ATTEMPT_TIMEOUT_MS, now: startedAt, goesOn };
  if (!isOurs()) return dispatches.map(() => NOT_OURS);
  try {
    if (mode === "batch" && channel.batch !== undefined)
      return await channel.batch.send(keepClicks(dispatches), options);
    const single = digest === undefined ? dispatches[0] : toDigest(digest, keepClicks(dispatches));
    if (single === undefined) return [];
    const result = await channel.send(single, options);
    return dispatches.map(() => result);
  } catch (fault) {
    // A defect in the channel's code: it may have sent something, and a repeat would fail again.
    logger.error("a channel failed on an internal error", {
      channel: channel.name,
      ...describeCauses(items),
      ...errorFields(fault),
    });
    return dispatches.map(() => ({ outcome: "in_doubt", detail: "a fault inside reachlog; its log has more" }));
  }
}

function keepClicks(dispatches: readonly Dispatch[]): readonly Click[] {
  return dispatches.filter((dispatch) => dispatch.kind === "click");
}

/** Dispatches that a log line names. A batch has a thousand of them, and nearby positions lead to the rest. */
const NAMED_MAX = 10;

/** Describes for a log line where these dispatches were requested, and by which requests. */
export function describeCauses(items: readonly Pick<PendingDispatch, "event">[]): LogFields {
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

/** Clicks as networks receive them, made once for all channels. */
const clicks = new WeakMap<Recorded, Click>();

/**
 * Returns what an event requests to be dispatched, or undefined if its personal data was erased. A retry dispatches the
 * event that it repeats. A webhook carries all events as they are, including tests and erased events.
 */
export function toDispatch(
  store: LogStore,
  event: Recorded,
  channel: ChannelName,
): Dispatch | undefined | Promise<Dispatch | undefined> {
  if (event.type === "DispatchRetryRequested" && event.data.channel === channel) {
    return eventAt(store, event.data.source).then((source) => toDispatch(store, source, channel));
  }
  if (isWebhook(channel)) return { kind: "event", id: event.id, time: event.time, event };
  if (event.meta.erased === true) return undefined;
  const { id, time } = event;
  switch (event.type) {
    case "LinkClicked":
      return clicks.get(event) ?? toClick(event);
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
    // Older versions recorded clicks with any spelling of the link.
    ...normalizeLink(data.domain, data.short_code),
    originalUrl,
    normalizedUrl,
    ip: data.ip === undefined ? undefined : canonicalAddress(data.ip),
    userAgent,
    bot,
  };
  clicks.set(event, click);
  return click;
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
