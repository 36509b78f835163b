import type { DispatchResult } from "../network.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";

/**
 * Maximum number of events that one request of Meta's Conversions API accepts;
 * https://developers.facebook.com/docs/marketing-api/conversions-api/using-the-api
 */
export const EVENTS_MAX = 1_000;

/**
 * Maximum age of an event, in ms. Meta and OpenAI refuse a whole request that holds an older event; Snap names 37 days,
 * but its documented clients send no older one either.
 */
export const EVENT_AGE_MS_MAX = 7 * 24 * 60 * 60_000;

/**
 * Maximum size of the events in one request to Meta, in bytes; Meta names no limit. It holds a thousand usual events; a
 * thousand with the longest addresses would be 5 MB, too much for a slow line within the time-out.
 */
const BODY_BYTES_MAX = 1024 * 1024;

/**
 * Maximum number of requests for one batch. A refused request is cut in half, so one bad event among a thousand takes
 * at most 21 requests. If all are bad, 300 requests settle 145 events, and eight attempts settle a thousand.
 */
export const REQUESTS_MAX = 300;

/** Time limit of a whole batch, as a multiple of the time-out of one request. */
const DEADLINE_REQUESTS = 10;

const UNASKED: Extract<DispatchResult, { outcome: "retryable" }> = {
  outcome: "retryable",
  detail: "the network was not asked: the batch took too long",
  unasked: true,
};

export interface BatchOptions {
  /** Time-out of one request in ms. The whole batch takes at most ten times that. */
  readonly timeoutMs: number;
  /** Sends serialized events in one request. The result applies to all of them. */
  readonly post: (events: readonly string[], timeoutMs: number) => Promise<DispatchResult>;
  /** The sending calls this before each request of the batch; if it returns false, no further request is made. */
  readonly goesOn?: (() => boolean) | undefined;
  /** Returns the time of a monotonic clock, in ms. */
  readonly elapsedMs?: () => number;
}

/**
 * Delivers serialized events to Meta, and returns the outcome of each, in order. One bad event makes Meta refuse the
 * whole request, so a refused one is halved: `b` bad events of `n` take at most `1 + 2 b ⌈log2 n⌉` requests.
 */
export async function deliverBatch(events: readonly string[], options: BatchOptions): Promise<DispatchResult[]> {
  const { timeoutMs, post, goesOn = () => true, elapsedMs = () => performance.now() } = options;
  const results: DispatchResult[] = [];
  const endsAt = elapsedMs() + DEADLINE_REQUESTS * timeoutMs;
  // Parts of the batch that are still to be sent; the next part is the last of the list.
  const open = splitIntoRequests(events).toReversed();
  // Result of the events that are not sent because the request before them failed, because REQUESTS_MAX requests were
  // made, or because the deadline has passed after at least one event was settled.
  let rest = UNASKED;
  for (let requests = 0; requests < REQUESTS_MAX; requests++) {
    const part = open.pop();
    const leftMs = endsAt - elapsedMs();
    if (part === undefined || !goesOn()) break;
    // After the deadline, requests continue until one event is settled: otherwise a network that is slow to refuse
    // would block the batch for ever.
    if (leftMs <= 0 && results.length > 0) break;
    const result = await post(part, leftMs > 0 ? Math.min(timeoutMs, leftMs) : timeoutMs);
    // The network refuses one of these events, and not the channel, so the part is halved to find it.
    if (part.length > 1 && result.outcome === "refused" && !result.channel) {
      const middle = Math.ceil(part.length / 2);
      open.push(part.slice(middle), part.slice(0, middle));
      continue;
    }
    for (const _ of part) results.push(result);
    if (result.outcome === "retryable" || (result.outcome === "refused" && result.channel)) {
      // Events that were not sent wait as long as those of the failed request.
      const pause = result.outcome === "retryable" ? result.retryAfterMs : undefined;
      const detail = "the network was not asked: the request before it failed";
      rest = { ...UNASKED, detail, ...omitUndefined({ retryAfterMs: pause }) };
      break;
    }
  }
  while (results.length < events.length) results.push(rest);
  return results;
}

export type Skipped = Extract<DispatchResult, { outcome: "skipped" }>;

/** Delivers events as {@link deliverBatch} does, and puts the results of skipped dispatches in their places. */
export async function deliverAmongSkipped(prepared: readonly (string | Skipped)[], options: BatchOptions) {
  const results = await deliverBatch(
    prepared.filter((event) => typeof event === "string"),
    options,
  );
  let next = 0;
  return prepared.flatMap((one) => (typeof one === "string" ? results.slice(next, ++next) : [one]));
}

/**
 * Splits the serialized events into runs that each fit into one request. An event that is too large by itself goes
 * alone.
 */
function splitIntoRequests(events: readonly string[]): string[][] {
  const runs: string[][] = [];
  let bytes = Infinity;
  for (const event of events) {
    const size = Buffer.byteLength(event);
    const run = runs.at(-1);
    if (run === undefined || run.length === EVENTS_MAX || bytes + size > BODY_BYTES_MAX) {
      runs.push([event]);
      bytes = size;
    } else {
      run.push(event);
      bytes += size;
    }
  }
  return runs;
}
