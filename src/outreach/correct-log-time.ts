import { newestMs } from "../../projections/quota.ts";
import { handle } from "../log/decide-and-append.ts";
import { type EventMetadata, type NewEvent, STREAMS } from "../log/event-log.ts";
import { isSkewed } from "../log/log-clock.ts";
import { isoTime } from "../platform/clock.ts";
import { dayIn } from "./quota-day.ts";
import type { Reachlog } from "../privacy/reachlog.ts";

/**
 * Records that the clock is right, if the log's newest event is ahead of it. Quota and sending window follow the clock
 * from then on. `aheadMs`: how far the event was ahead; undefined if it was not, and nothing is recorded.
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
