import type { DispatchResult } from "../network.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";

/**
 * What one request of the Conversions API takes;
 * https://developers.facebook.com/docs/marketing-api/conversions-api/using-the-api
 */
export const EVENTS_MAX = 1_000;

/**
 * Bytes of events in one request. Meta names no limit. A usual event has about 500 bytes, so this holds a thousand of
 * them; a thousand with the longest addresses would be 5 MB, which a slow line does not carry within the time-out.
 */
const BODY_BYTES_MAX = 1024 * 1024;

/**
 * Requests for one batch. One bad event among a thousand takes at most 21. Where all are bad, each request but the ten
 * on the way down settles half an event, so that eight attempts of a dispatch settle a thousand of them.
 */
export const REQUESTS_MAX = 300;

/** The whole may take as long as so many requests that run into their time-out. */
const DEADLINE_REQUESTS = 10;

const UNASKED: Extract<DispatchResult, { outcome: "retryable" }> = {
  outcome: "retryable",
  detail: "Meta was not asked: the batch took too long",
  unasked: true,
};

export interface BatchOptions {
  /** Of one request; the whole batch takes at most ten times that. */
  readonly timeoutMs: number;
  /** Sends serialized events in one request, which answers for all of them. */
  readonly post: (events: readonly string[], timeoutMs: number) => Promise<DispatchResult>;
  /** Asked before each request; false ends the batch. */
  readonly goesOn?: (() => boolean) | undefined;
  /** A clock that only goes forward, in ms. */
  readonly elapsedMs?: () => number;
}

/**
 * Delivers serialized events, and returns the outcome of each, in order. One bad event makes Meta refuse the whole
 * request, so what is refused is halved until the bad ones are alone: `b` of them in one request of `n` events take at
 * most `1 + 2 b ⌈log2 n⌉` requests. What is wrong with the channel, or may pass, ends the batch, and so do
 * {@link REQUESTS_MAX} requests and, once it has settled something, the deadline: the rest was not asked.
 */
export async function deliverBatch(events: readonly string[], options: BatchOptions): Promise<DispatchResult[]> {
  const { timeoutMs, post, goesOn = () => true, elapsedMs = () => performance.now() } = options;
  const results: DispatchResult[] = [];
  const endsAt = elapsedMs() + DEADLINE_REQUESTS * timeoutMs;
  // The next part is the last of the list.
  const open = splitIntoRequests(events).toReversed();
  let rest = UNASKED;
  for (let requests = 0; requests < REQUESTS_MAX; requests++) {
    const part = open.pop();
    const leftMs = endsAt - elapsedMs();
    if (part === undefined || !goesOn()) break;
    // A network that takes its time to refuse is asked until one event is alone, or nothing would ever come of it.
    if (leftMs <= 0 && results.length > 0) break;
    const result = await post(part, leftMs > 0 ? Math.min(timeoutMs, leftMs) : timeoutMs);
    // It blames an event rather than the channel.
    if (part.length > 1 && result.outcome === "refused" && !result.channel) {
      const middle = Math.ceil(part.length / 2);
      open.push(part.slice(middle), part.slice(0, middle));
      continue;
    }
    for (const _ of part) results.push(result);
    if (result.outcome === "retryable" || (result.outcome === "refused" && result.channel)) {
      // Those that no request was made for need not wait less than the one before them.
      const pause = result.outcome === "retryable" ? result.retryAfterMs : undefined;
      const detail = "Meta was not asked: the request before it failed";
      rest = { ...UNASKED, detail, ...omitUndefined({ retryAfterMs: pause }) };
      break;
    }
  }
  while (results.length < events.length) results.push(rest);
  return results;
}

/** The events in runs that each fit into one request; one that is too large by itself goes alone. */
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
