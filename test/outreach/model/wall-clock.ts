/** Wall clock of a time zone, by Intl: independent of the code under test. */
const formats = new Map<string, Intl.DateTimeFormat>();

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** Day of the week and time, such as `Sun 02:30`. */
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

/** The next minute after `ms` at which the window opens or closes in the zone. Each window does so within days. */
export function nextEdge(window: string, timezone: string, ms: number): number {
  const isOpen = isShownOpen(window, timezone, ms);
  let at = Math.floor(ms / MINUTE_MS + 1) * MINUTE_MS;
  while (isShownOpen(window, timezone, at) === isOpen) at += MINUTE_MS;
  return at;
}

/** The next minute after `ms` at which the window opens. */
export function nextOpening(window: string, timezone: string, ms: number): number {
  const edge = nextEdge(window, timezone, ms);
  return isShownOpen(window, timezone, edge) ? edge : nextEdge(window, timezone, edge);
}

const MINUTE_MS = 60_000;
