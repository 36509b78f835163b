import type { Contact } from "../../projections/contact-state.ts";
import type { QuotaMoment } from "../../projections/quota.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import type { OpenHours, SendWindow } from "../config/send-window.ts";

/**
 * The moment at which a run decides about a recipient: its day in the quota's time zone, for the daily quota, and its
 * times, for the sending window.
 */
export interface TurnMoment extends QuotaMoment {
  /**
   * Time of the log's clock, in ms since the epoch. If that clock was set back, it is earlier than `ms`, the time of
   * the newest event.
   */
  readonly clockMs: number;
}

/**
 * True if a clock in the time zone shows a day and hour of the sending window. An hour that daylight saving skips is
 * never shown, and one that occurs twice counts twice.
 */
export function isOpen(hours: readonly OpenHours[], timezone: string, ms: number): boolean {
  const { dayOfWeek, hour, minute } = toZone(timezone, ms);
  const now = hour * 60 + minute;
  return hours.some(({ day, from, to }) => day === dayOfWeek && from <= now && now < to);
}

/**
 * Number of days in which the next opening of the sending window is looked for. More than a week, because daylight
 * saving may skip the only hour of a weekly window.
 */
const DAYS_AHEAD = 15;

/**
 * Returns the time at which the sending window next opens or, if it is open at `ms`, next closes; ms since the epoch.
 * Undefined if it is always open.
 */
export function changesAt(hours: readonly OpenHours[], timezone: string, ms: number): number | undefined {
  const wasOpen = isOpen(hours, timezone, ms);
  const today = toZone(timezone, ms).toPlainDate();
  const last = today.add({ days: DAYS_AHEAD }).toZonedDateTime(timezone).epochMilliseconds;
  const moments = [...clockChanges(timezone, ms, last)];
  for (let ahead = 0; ahead <= DAYS_AHEAD; ahead++) {
    const date = today.add({ days: ahead });
    for (const { day, from, to } of hours) {
      if (day === date.dayOfWeek) moments.push(...toMoments(date, from, timezone), ...toMoments(date, to, timezone));
    }
  }
  return moments.sort((one, other) => one - other).find((at) => at > ms && isOpen(hours, timezone, at) !== wasOpen);
}

/**
 * Returns the moments at which a clock in the zone shows a time of day, given in minutes after midnight: two if clocks
 * show it twice on that date.
 */
function toMoments(date: Temporal.PlainDate, minutes: number, timezone: string): number[] {
  const local = date.toPlainDateTime().add({ minutes });
  return (["earlier", "later"] as const).map(
    (disambiguation) => local.toZonedDateTime(timezone, { disambiguation }).epochMilliseconds,
  );
}

/** Yields the moments at which the time zone changes between summer and winter time. */
function* clockChanges(timezone: string, from: number, to: number): Iterable<number> {
  let next = toZone(timezone, from).getTimeZoneTransition("next");
  while (next !== null && next.epochMilliseconds <= to) {
    yield next.epochMilliseconds;
    next = next.getTimeZoneTransition("next");
  }
}

function toZone(timezone: string, ms: number): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timezone);
}

/**
 * Returns the time zone in which the sending window counts for a recipient. `own`: the recipient's zone in the imported
 * list.
 */
export function windowZone(window: SendWindow, own: string | undefined, { timezone }: QuotaMoment): string {
  return window.zone === "recipient" ? (own ?? timezone) : timezone;
}

/** True if the sending window is closed for the recipient, so that no message may go out. */
export function isClosedFor(window: SendWindow | undefined, recipient: Contact | undefined, now: TurnMoment): boolean {
  return window !== undefined && isClosed(window, windowZone(window, recipient?.timezone, now), now);
}

/**
 * True if the sending window is closed. If the log's clock was set back, the window must be open both by that clock and
 * at the time of the newest event.
 */
export function isClosed({ hours }: SendWindow, timezone: string, { ms, clockMs }: TurnMoment): boolean {
  return !isOpen(hours, timezone, ms) || !isOpen(hours, timezone, clockMs);
}

/**
 * True if a closed sending window refuses the start of a run. If each recipient has a window in their own time zone,
 * none does, because the window may be open for some.
 */
export function refusesStart(window: SendWindow | undefined, now: TurnMoment): boolean {
  return window?.whenClosed === "end" && window.zone === "quota" && isClosed(window, now.timezone, now);
}

/** Returns the time at which a closed sending window opens, ms since the epoch; `now.clockMs` if it is open. */
export function opensAt({ hours }: SendWindow, timezone: string, { ms, clockMs }: TurnMoment): number {
  const openings = [ms, clockMs]
    .filter((at) => !isOpen(hours, timezone, at))
    .map((at) => changesAt(hours, timezone, at));
  return Math.max(clockMs, ...openings.map((at) => at ?? clockMs));
}

/** Describes the sending window for an operator. `ms`: the present time, since the epoch. */
export function describeWindow({ text, hours, zone, whenClosed }: SendWindow, timezone: string, ms: number): string {
  const whose = zone === "recipient" ? `each recipient's time zone, or ${timezone} where that is not known` : timezone;
  const change = changesAt(hours, timezone, ms);
  const until = change === undefined ? "" : ` until ${isoTime(change)}`;
  const state = isOpen(hours, timezone, ms) ? "open" : "closed";
  return `${text} in ${whose}; now ${state} in ${timezone}${until}; outside of it a run ${whenClosed}s`;
}
