/** @jsxImportSource preact */
import type { VNode } from "preact";
import { useContext } from "preact/hooks";
import { countInWords, formatDuration } from "../../platform/format-numbers-and-lists.ts";
import { ShownView, type View } from "../page-context.ts";

/**
 * Format of a moment. `short`: `26 Nov, 08:04`, with the year if it is not this one; `clock`: `08:04`; `near`: `clock`
 * today, else `short`; `seconds`: `08:04:11`; `full`: `Today, 08:04:11 UTC · 3 h 38 min ago`.
 */
type TimeStyle = "short" | "weekday" | "clock" | "near" | "seconds" | "date" | "day" | "full" | "age";

/** For which reader a page writes times: the language, the settings and the moment of the page. */
export interface TimeReading {
  /** Language whose formats apply, as a BCP 47 tag. */
  readonly language: string;
  readonly timezone: string;
  /** The moment of the page, in ms since 1970. */
  readonly now: number;
}

/** Returns how a page writes times: in the language of its reader, and in the time zone of the settings. */
export function readTimes({ language, settings, now }: View): TimeReading {
  return { language, timezone: settings.timezone, now };
}

/** Returns how the page of the calling component writes times. A page without a view uses British formats in UTC. */
export function useTimes(): TimeReading {
  const view = useContext(ShownView);
  return view === undefined ? { language: "en-GB", timezone: "UTC", now: 0 } : readTimes(view);
}

interface TimeProps {
  /** Moment to show, ISO 8601. Nothing is rendered if undefined. */
  readonly at: string | undefined;
  /** Format of the moment. Default: `short`. Lists under a heading with the day use `clock`. */
  readonly as?: TimeStyle;
  /** Words before the moment. */
  readonly before?: string;
}

/** Formats ms since 1970 as ISO 8601 in UTC. */
export function toIso(ms: number): string {
  return new Date(ms).toISOString();
}

/** Shows a moment in the reader's format and the quota's time zone, with the exact time in UTC in the title. */
export function Time({ at, as = "short", before = "" }: TimeProps): VNode | null {
  const times = useTimes();
  if (at === undefined) return null;
  return (
    <>
      {before}
      <time dateTime={at} title={at.replace("T", " ").replace("Z", " UTC")}>
        {formatTime(at, as, times)}
      </time>
    </>
  );
}

const CLOCK = { hour: "2-digit", minute: "2-digit" } as const;
const DATE = { day: "numeric", month: "short" } as const;
const YEAR = { year: "numeric" } as const;

/** Options of `Intl`, by format. Formats that are not here are put together from these. */
const FORMATS = {
  clock: CLOCK,
  seconds: { ...CLOCK, second: "2-digit" },
  zoned: { ...CLOCK, second: "2-digit", timeZoneName: "short" },
  date: DATE,
  dateInYear: { ...DATE, ...YEAR },
  short: { ...DATE, ...CLOCK },
  shortInYear: { ...DATE, ...YEAR, ...CLOCK },
  weekday: { weekday: "short", ...DATE, ...CLOCK },
  weekdayInYear: { weekday: "short", ...DATE, ...YEAR, ...CLOCK },
  day: { weekday: "long", day: "numeric", month: "long" },
  dayInYear: { weekday: "long", day: "numeric", month: "long", ...YEAR },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;

/** Cache of formats by language, time zone and name: to create one takes 0.3 ms, and a page shows hundreds of times. */
const formats = new Map<string, Intl.DateTimeFormat>();
const FORMATS_MAX = 500;

function findFormat(name: keyof typeof FORMATS, { language, timezone }: TimeReading): Intl.DateTimeFormat {
  // Names of weekdays are English even for a reader with other formats, because the console is in English.
  const locale = "weekday" in FORMATS[name] && !language.startsWith("en") ? "en-GB" : language;
  const key = `${name} ${locale} ${timezone}`;
  const known = formats.get(key);
  if (known !== undefined) return known;
  const { hour12 } = new Intl.DateTimeFormat(locale, CLOCK).resolvedOptions();
  const hour = hour12 === true && "hour" in FORMATS[name] ? ({ hour: "numeric" } as const) : {};
  const zone = { timeZone: timezone, calendar: "gregory", numberingSystem: "latn" };
  const made = new Intl.DateTimeFormat(locale, { ...FORMATS[name], ...hour, ...zone });
  if (formats.size === FORMATS_MAX) formats.clear();
  formats.set(key, made);
  return made;
}

/** Maximum age of a moment, in ms, for which the format `full` says how long ago it was. */
const AGE_SHOWN_MS = 30 * 86_400_000;

/** Formats a moment as {@link Time} shows it. */
export function formatTime(at: string | number, as: TimeStyle, reading: TimeReading): string {
  const ms = typeof at === "number" ? at : Date.parse(at);
  const { timezone, now } = reading;
  const format = (name: keyof typeof FORMATS) => findFormat(name, reading).format(ms);
  if (as === "clock" || as === "seconds") return format(as);
  if (as === "age") return formatAge(ms, now);
  const [day, today] = [ms, now].map((time) =>
    Temporal.Instant.fromEpochMilliseconds(time).toZonedDateTimeISO(timezone).toPlainDate(),
  ) as [Temporal.PlainDate, Temporal.PlainDate];
  const inYear = day.year === today.year ? "" : "InYear";
  const { days } = day.until(today);
  const near = days === 0 ? "Today" : days === 1 ? "Yesterday" : undefined;
  if (as === "near") return days === 0 ? format("clock") : format(`short${inYear}`);
  if (as === "day") return `${near === undefined ? "" : `${near}, `}${format(`day${inYear}`)}`;
  if (as !== "full") return format(`${as}${inYear}`);
  const age = Math.abs(now - ms) < AGE_SHOWN_MS ? ` · ${formatAge(ms, now)}` : "";
  return `${near ?? format(`date${inYear}`)}, ${format("zoned")}${age}`;
}

const DAY_SECONDS = 86_400;

/** Formats how far a moment is from another, such as `15 days ago`, `3 h 38 min ago` or `in 2 min`. */
function formatAge(ms: number, now: number): string {
  const seconds = Math.round(Math.abs(now - ms) / 1000);
  if (seconds < 1) return "now";
  const days = Math.floor(seconds / DAY_SECONDS);
  const span = days === 0 ? formatDuration(seconds) : countInWords(days, "day");
  return ms < now ? `${span} ago` : `in ${span}`;
}
