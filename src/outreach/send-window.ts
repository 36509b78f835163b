import type { Contact } from "../../projections/contacts.ts";
import type { QuotaMoment } from "../../projections/quota.ts";
import { isoTime } from "../platform/clock.ts";
import type { OpenHours, SendWindow } from "../config/send-window.ts";

/**
 * A moment as a decision about the window sees it. `clockMs`: what the log's clock shows, which is before `ms` where that
 * clock was set back.
 */
export interface TurnMoment extends QuotaMoment {
  readonly clockMs: number;
}

/**
 * True if a clock on the wall of the zone shows a time of the window. An hour that daylight saving skips is never shown,
 * and one that occurs twice counts twice.
 */
export function isOpen(hours: readonly OpenHours[], timezone: string, ms: number): boolean {
  const { dayOfWeek, hour, minute } = toZone(timezone, ms);
  const now = hour * 60 + minute;
  return hours.some(({ day, from, to }) => day === dayOfWeek && from <= now && now < to);
}

/** Days to look ahead: a weekly window whose only day or hour a zone skips comes a week later. */
const DAYS_AHEAD = 15;

/** When the window next opens, or closes if it is open at `ms`; ms since the epoch. Undefined: it is always open. */
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

/** When the clock shows so many minutes since the midnight that begins the date: twice, where an hour occurs twice. */
function toMoments(date: Temporal.PlainDate, minutes: number, timezone: string): number[] {
  const local = date.toPlainDateTime().add({ minutes });
  return (["earlier", "later"] as const).map(
    (disambiguation) => local.toZonedDateTime(timezone, { disambiguation }).epochMilliseconds,
  );
}

/** When the zone changes its clocks. */
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

/** The zone whose clock counts for a recipient; `own`: theirs, as the list has it. */
export function windowZone(window: SendWindow, own: string | undefined, { timezone }: QuotaMoment): string {
  return window.zone === "recipient" ? (own ?? timezone) : timezone;
}

/** True if no message may go out to the recipient. */
export function isClosedFor(window: SendWindow | undefined, recipient: Contact | undefined, now: TurnMoment): boolean {
  return window !== undefined && isClosed(window, windowZone(window, recipient?.timezone, now), now);
}

/** True if no message may go out. A clock that was set back counts as it is, and as the newest event has it. */
export function isClosed({ hours }: SendWindow, timezone: string, { ms, clockMs }: TurnMoment): boolean {
  return !isOpen(hours, timezone, ms) || !isOpen(hours, timezone, clockMs);
}

/** When a window that is closed opens, ms since the epoch; `now.clockMs` where it is open. */
export function opensAt({ hours }: SendWindow, timezone: string, { ms, clockMs }: TurnMoment): number {
  const openings = [ms, clockMs]
    .filter((at) => !isOpen(hours, timezone, at))
    .map((at) => changesAt(hours, timezone, at));
  return Math.max(clockMs, ...openings.map((at) => at ?? clockMs));
}

/** A sentence for an operator; `ms`: now, since the epoch. */
export function describeWindow({ text, hours, zone, whenClosed }: SendWindow, timezone: string, ms: number): string {
  const whose = zone === "recipient" ? `each recipient's time zone, or ${timezone} where that is not known` : timezone;
  const change = changesAt(hours, timezone, ms);
  const until = change === undefined ? "" : ` until ${isoTime(change)}`;
  const state = isOpen(hours, timezone, ms) ? "open" : "closed";
  return `${text} in ${whose}; now ${state} in ${timezone}${until}; outside of it a run ${whenClosed}s`;
}
