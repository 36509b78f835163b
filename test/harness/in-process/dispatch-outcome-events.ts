import type { Recorded } from "../../../events/event-types-and-codec.ts";
import type { ChannelName, Lane } from "../../../events/channel-and-lane-names.ts";
import { isOutcome, type OutcomeType } from "../../../events/dispatches-requested-by-events.ts";
import type { DispatchMode } from "../../../events/delivery.ts";
import { positionsOf } from "../../../events/position-ranges.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";

/** Data of one dispatch's outcome; the fields present depend on the event's type. */
interface OfOne {
  readonly channel: ChannelName;
  readonly lane: Lane;
  readonly low_watermark: number;
  readonly source: number;
  readonly attempt: number;
  readonly mode?: DispatchMode;
  readonly digest?: string;
  readonly status?: number;
  readonly latency_ms?: number;
  readonly network_id?: string;
  readonly detail?: string;
  readonly retry_at?: string;
  readonly may_have_arrived?: true;
  readonly reason?: "no_user_agent" | "no_ip_address" | "too_old" | "expired" | "filtered";
  readonly refused?: boolean;
  readonly doubtful_since?: string;
}

export interface OutcomeOfOne extends Pick<Recorded, "position" | "stream" | "time"> {
  readonly type: OutcomeType;
  readonly data: OfOne;
}

/** Splits the outcome events among the given events into one outcome per dispatch. */
export function outcomesIn(events: readonly Recorded[]): OutcomeOfOne[] {
  return events.flatMap((event) => {
    if (!isOutcome(event)) return [];
    const { type, position, stream, time, data } = event;
    const { requests, ...common } = data;
    return requests.flatMap(({ sources, ...request }) =>
      positionsOf(sources).map((source) => {
        return { type, position, stream, time, data: { ...common, ...request, source } };
      }),
    );
  });
}

/**
 * Makes the event that records the outcome of one dispatch. By default the outcome is that of the first attempt, and
 * the low watermark is 0.
 */
export function outcomeOf<T extends OutcomeType>(
  type: T,
  given: Pick<OfOne, "channel" | "lane" | "source"> & Partial<OfOne>,
): NewEvent<T> {
  const { channel, lane, low_watermark = 0, source, attempt = 1, ...rest } = given;
  const isAsked = type === "DispatchSucceeded" || type === "DispatchFailed";
  const request = { sources: [source], attempt, ...(isAsked ? { mode: "single" } : {}), ...rest };
  return { type, data: { channel, lane, low_watermark, requests: [request] } } as unknown as NewEvent<T>;
}
