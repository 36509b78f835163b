/** Cache: time zone -> its formatter of `Intl`, which shares no code with the service's own time zones. */
const formats = new Map<string, Intl.DateTimeFormat>();

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** Returns the day of the week (0 is Monday) and the time that clocks in the zone show. */
function wallClock(timezone: string, ms: number): { readonly day: number; readonly time: string } {
  const options = {
    timeZone: timezone,
    weekday: "short",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  } as const;
  const format = formats.get(timezone) ?? new Intl.DateTimeFormat("en-US", options);
  formats.set(timezone, format);
  const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, value]));
  return { day: DAYS.indexOf(parts.get("weekday") ?? ""), time: `${parts.get("hour")}:${parts.get("minute")}` };
}

/** True if the zone's wall clock shows a time in the window, which has the format of SEND_WINDOW. */
export function isShownOpen(window: string, timezone: string, ms: number): boolean {
  const { day, time } = wallClock(timezone, ms);
  return window.split(", ").some((entry) => {
    const [, first = "", last = "", from = "", to = ""] = /^(\w+)-(\w+) (.{5})-(.{5})$/.exec(entry) ?? [];
    const isDay = (one: number): boolean => one >= DAYS.indexOf(first) && one <= DAYS.indexOf(last);
    if (from < to) return isDay(day) && from <= time && time < to;
    return (isDay(day) && from <= time) || (isDay((day + 6) % 7) && time < to);
  });
}

/**
 * Returns the next minute after `ms` at which the window opens or closes in the zone. All windows here do so within
 * days.
 */
export function nextEdge(window: string, timezone: string, ms: number): number {
  const isOpen = isShownOpen(window, timezone, ms);
  let at = Math.floor(ms / MINUTE_MS + 1) * MINUTE_MS;
  while (isShownOpen(window, timezone, at) === isOpen) at += MINUTE_MS;
  return at;
}

/** Returns the next minute after `ms` at which the window opens in the zone. */
export function nextOpening(window: string, timezone: string, ms: number): number {
  const edge = nextEdge(window, timezone, ms);
  return isShownOpen(window, timezone, edge) ? edge : nextEdge(window, timezone, edge);
}

const MINUTE_MS = 60_000;
