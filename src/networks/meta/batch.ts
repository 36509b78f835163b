import type { DispatchResult } from "../network.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";

/**
 * Events that one request of the Conversions API accepts;
 * https://developers.facebook.com/docs/marketing-api/conversions-api/using-the-api
 */
export const EVENTS_MAX = 1_000;

/**
 * Bytes of events in one request. Meta names no limit. A usual event has about 500 bytes, so this holds a thousand of
 * them; with the longest addresses they would be 5 MB, which a slow line does not carry within the time-out.
 */
const BODY_BYTES_MAX = 1024 * 1024;

/**
 * Requests for one batch. One bad event among a thousand takes at most 21. If all are bad, each request after the first
 * ten settles half an event, so that eight attempts of a dispatch settle a thousand of them.
 */
export const REQUESTS_MAX = 300;

/** The whole batch may take as long as this many requests that run into their time-out. */
const DEADLINE_REQUESTS = 10;

const UNASKED: Extract<DispatchResult, { outcome: "retryable" }> = {
  outcome: "retryable",
  detail: "Meta was not asked: the batch took too long",
  unasked: true,
};

export interface BatchOptions {
  /** The time-out of one request. The whole batch takes at most ten times that. */
  readonly timeoutMs: number;
  /** Sends serialized events in one request, whose result applies to all of them. */
  readonly post: (events: readonly string[], timeoutMs: number) => Promise<DispatchResult>;
  /** Called before each request; false ends the batch. */
  readonly goesOn?: (() => boolean) | undefined;
  /** A monotonic clock, in ms. */
  readonly elapsedMs?: () => number;
}

/**
 * Delivers serialized events, and returns the outcome of each, in order. One bad event makes Meta refuse the whole
 * request, so a refused one is halved: `b` bad events in one request of `n` take at most `1 + 2 b ⌈log2 n⌉` requests.
 */
export async function deliverBatch(events: readonly string[], options: BatchOptions): Promise<DispatchResult[]> {
  const { timeoutMs, post, goesOn = () => true, elapsedMs = () => performance.now() } = options;
  const results: DispatchResult[] = [];
  const endsAt = elapsedMs() + DEADLINE_REQUESTS * timeoutMs;
  // The next part is the last of the list.
  const open = splitIntoRequests(events).toReversed();
  // A fault of the channel, or one that may pass, ends the batch. So do REQUESTS_MAX requests and, once the batch has
  // settled something, the deadline. The rest is not asked.
  let rest = UNASKED;
  for (let requests = 0; requests < REQUESTS_MAX; requests++) {
    const part = open.pop();
    const leftMs = endsAt - elapsedMs();
    if (part === undefined || !goesOn()) break;
    // After the deadline, requests continue until one event is settled: otherwise a network that is slow to refuse
    // would block the batch for ever.
    if (leftMs <= 0 && results.length > 0) break;
    const result = await post(part, leftMs > 0 ? Math.min(timeoutMs, leftMs) : timeoutMs);
    // The refusal blames an event rather than the channel.
    if (part.length > 1 && result.outcome === "refused" && !result.channel) {
      const middle = Math.ceil(part.length / 2);
      open.push(part.slice(middle), part.slice(0, middle));
      continue;
    }
    for (const _ of part) results.push(result);
    if (result.outcome === "retryable" || (result.outcome === "refused" && result.channel)) {
      // Events without a request wait as long as the one before them.
      const pause = result.outcome === "retryable" ? result.retryAfterMs : undefined;
      const detail = "Meta was not asked: the request before it failed";
      rest = { ...UNASKED, detail, ...omitUndefined({ retryAfterMs: pause }) };
      break;
    }
  }
  while (results.length < events.length) results.push(rest);
  return results;
}

/** Splits the events into runs that each fit into one request. An event that is too large by itself goes alone. */
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
