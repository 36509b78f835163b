import type { ChannelName } from "../../../events/channel-and-lane-names.ts";
import type { Recorded } from "../../../events/event-types-and-codec.ts";
import type { EventLog } from "../../../src/log/event-log.ts";
import type { Dispatch, DispatchResult } from "../../../src/networks/network.ts";
import { outcomesIn, type OutcomeOfOne } from "../../harness/in-process/dispatch-outcome-events.ts";
import type { Request } from "./network.ts";

/**
 * Checks each request to a channel when it is made: by the network's answers so far and by the log, it must be allowed.
 */
export interface Watch {
  request(request: Request, now: number, seen: { readonly position: number; readonly isSuspended: boolean }): void;
  /** Notes that the service starts with this log. */
  begin(log: readonly Recorded[]): void;
  /** Notes that a dead letter with this key is retried, so that its click or text may be sent once more. */
  reowed(key: string): void;
  /** Number of requests, by key, whose outcome may be missing in the log because of a kill or a refused append. */
  readonly exposed: ReadonlyMap<string, number>;
  readonly broken: readonly string[];
}

/**
 * Numbers all requests to one channel and all final outcomes in the log, in one order over all instances. Tests compare
 * with these numbers what came first.
 */
export interface OrderWatch {
  /**
   * Wraps an event log, so that a final outcome is counted once it is in the log and before the instance learns that.
   */
  readonly wrap: (eventLog: EventLog) => EventLog;
  request(dispatch: Dispatch): void;
  readonly requests: readonly { readonly event: Recorded; readonly at: number }[];
  /**
   * Position of an event -> number of the final outcome of the event's dispatch. All requests and final outcomes are
   * numbered together, from 0 on, in the order in which they happened.
   */
  readonly ended: ReadonlyMap<number, number>;
}

interface Made {
  readonly request: Request;
  /** Position of the end of the log when the request was made. */
  readonly position: number;
}

/**
 * Returns the text by which a simulated receiver recognises an event: the short code of a click, or the text of a
 * notification or message.
 */
export function keyOf({ type, data }: Recorded): string | undefined {
  if (type === "LinkClicked") return data.short_code;
  if (type === "NotificationRequested") return data.message;
  return type === "MessageRequested" ? data.text : undefined;
}

/**
 * Maps the position of each event that requested a dispatch to the event's key, because outcomes name only positions.
 */
export function keysByPosition(log: readonly Recorded[]): ReadonlyMap<number, string> {
  const keys = new Map<number, string>();
  for (const event of log) {
    const key = keyOf(event);
    if (key !== undefined) keys.set(event.position, key);
    if (event.type === "DispatchRetryRequested") keys.set(event.position, keys.get(event.data.source) ?? "");
  }
  return keys;
}

/** Returns the outcomes of a channel's dispatches one by one, in the order of the log. */
export function outcomesOf(log: readonly Recorded[], channel: ChannelName): readonly OutcomeOfOne[] {
  return outcomesIn(log).filter(({ data }) => data.channel === channel);
}

/** True if an outcome ends its dispatch. */
export function isFinal({ type }: Pick<Recorded, "type">): boolean {
  return /^Dispatch(?:Succeeded|Skipped|InDoubt|Abandoned)$/.test(type);
}

export function createWatch(channel: ChannelName): Watch {
  const exposed = new Map<string, number>();
  const broken: string[] = [];
  let made = new Map<string, Made>();
  let ended = new Set<string>();
  let doubtful = new Set<string>();

  const check = (key: string, { life, mode }: Request, now: number): void => {
    const before = made.get(key);
    if (doubtful.has(key) && mode === "digest") broken.push(`${key} may have arrived and was sent in a digest`);
    if (before === undefined || before.request.life !== life) {
      if (ended.has(key)) broken.push(`${key} was asked for again, though the log has its end`);
      return;
    }
    const { answeredAt, results } = before.request;
    if (answeredAt === undefined) return void broken.push(`${key} was asked for twice at once`);
    const result = results.get(key);
    if (result === undefined || !mayRepeat(result)) broken.push(`${key} was asked for again after ${result?.outcome}`);
    const wait = result?.outcome === "retryable" ? (result.retryAfterMs ?? 0) : 0;
    if (now < answeredAt + wait) broken.push(`${key} was asked for again ${answeredAt + wait - now} ms too early`);
  };

  const expose = (log: readonly Recorded[]): void => {
    const keys = keysByPosition(log);
    const recorded = new Map<string, number>();
    for (const event of outcomesOf(log, channel)) recorded.set(keys.get(event.data.source) ?? "", event.position);
    for (const [key, { request, position }] of made) {
      const { killed, refused } = request.life;
      if ((killed || refused.has(channel)) && (recorded.get(key) ?? 0) <= position)
        exposed.set(key, (exposed.get(key) ?? 0) + 1);
    }
  };

  return {
    exposed,
    broken,
    request(request, now, { position, isSuspended }) {
      for (const [key, result] of request.results) {
        check(key, request, now);
        if (isSuspended && request.mode !== "text") broken.push(`${key} was sent to a channel that is suspended`);
        made.set(key, { request, position });
        if (result.outcome === "retryable" && result.mayHaveArrived === true) doubtful.add(key);
      }
    },
    begin(log) {
      expose(log);
      made = new Map();
      const keys = keysByPosition(log);
      ended = new Set();
      doubtful = new Set();
      for (const event of log) {
        if (!("channel" in event.data) || event.data.channel !== channel) continue;
        if (event.type === "DispatchRetryRequested") ended.delete(keys.get(event.position) ?? "");
        for (const outcome of outcomesIn([event])) {
          const key = keys.get(outcome.data.source) ?? "";
          if (isFinal(event)) ended.add(key);
          if (outcome.type === "DispatchFailed" && outcome.data.may_have_arrived === true) doubtful.add(key);
        }
      }
    },
    reowed(key) {
      ended.delete(key);
      made.delete(key);
      doubtful.delete(key);
    },
  };
}

export function createOrderWatch(): OrderWatch {
  const requests: { event: Recorded; at: number }[] = [];
  const ended = new Map<number, number>();
  let count = 0;
  return {
    requests,
    ended,
    wrap: (eventLog) => ({
      ...eventLog,
      async append(...args) {
        const appended = await eventLog.append(...args);
        for (const { data } of outcomesIn(args[1] as readonly Recorded[]).filter(isFinal))
          ended.set(data.source, count++);
        return appended;
      },
    }),
    request(dispatch) {
      if (dispatch.kind === "event") requests.push({ event: dispatch.event, at: count++ });
    },
  };
}

function mayRepeat(result: DispatchResult): boolean {
  return result.outcome === "retryable" || (result.outcome === "refused" && result.channel);
}
