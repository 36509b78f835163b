import { newestMs } from "../../projections/quota.ts";
import { handle } from "../log/decide-and-append.ts";
import { type EventMetadata, type NewEvent, STREAMS } from "../log/event-log.ts";
import { isSkewed } from "../log/log-time-and-clock-skew.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { dayIn } from "./quota-day.ts";
import type { Reachlog } from "../privacy/log-context-types.ts";

/**
 * Records that the clock is right if the newest event is too far ahead of it: the quota and the sending window then
 * follow the clock. `aheadMs`: how far ahead the event was; undefined if the clocks agree well enough, and nothing is
 * recorded.
 */
export async function correctLogTime(
  context: Reachlog,
  { timezone }: { readonly timezone: string },
  metadata: EventMetadata,
): Promise<{ readonly at: string; readonly day: string; readonly aheadMs: number | undefined }> {
  const { projector, logClock } = context;
  const now = logClock.now();
  const aheadMs = newestMs(projector.state("quota"), projector.time) - now;
  const data = { at: isoTime(now), day: dayIn(timezone, now), timezone };
  const { at, day } = data;
  if (!isSkewed(aheadMs) || aheadMs < 0) return { at, day, aheadMs: undefined };
  const corrected: NewEvent = { type: "LogTimeCorrected", data };
  await handle(context, STREAMS.log, () => ({ events: [corrected] }), { metadata });
  return { at, day, aheadMs };
}
