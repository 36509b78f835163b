/** @jsxImportSource preact */
import { createContext, type VNode } from "preact";
import { formatDuration } from "../../platform/counts-and-lists.ts";
import type { View } from "../page-context.ts";

/**
 * How to write a moment. `short` is `26 Nov, 08:04`, with the year if it is another one; `clock` is `08:04`; `near` is
 * that today, else `short`; `seconds`
 * is `08:04:11`; `full` is `Today, 08:04:11 UTC · 3 h 38 min ago`.
 */
type TimeStyle = "short" | "weekday" | "clock" | "near" | "seconds" | "date" | "day" | "full" | "age";

/** The reader of a page. Times are written in that format. */
export interface TimeReading {
  /** Language whose formats apply, as a BCP 47 tag. */
  readonly language: string;
  readonly timezone: string;
  /** The moment of the page, in ms since 1970. */
  readonly now: number;
}

/** Context of all times on a page. */
export const TimesRead = createContext<TimeReading>({ language: "en-GB", timezone: "UTC", now: 0 });

/** Returns the reader of a page. */
export function readTimes({ language, settings, now }: View): TimeReading {
  return { language, timezone: settings.timezone, now };
}

interface TimeProps {
  /** Moment to show, ISO 8601. Nothing is rendered if undefined. */
  readonly at: string | undefined;
  /** Default: `short`. Lists under a head with the day use `clock`. */
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
  if (at === undefined) return null;
  return (
    <>
      {before}
      <time dateTime={at} title={at.replace("T", " ").replace("Z", " UTC")} data-age={as === "age" ? "" : undefined}>
        <TimesRead.Consumer>{(reading) => formatTime(at, as, reading)}</TimesRead.Consumer>
      </time>
    </>
  );
}

const CLOCK = { hour: "2-digit", minute: "2-digit" } as const;
const DATE = { day: "numeric", month: "short" } as const;
const YEAR = { year: "numeric" } as const;

/** Options of the formats that are made of one piece. */
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

/** Formats by language, time zone and name: creating one takes 0.3 ms, and a page shows hundreds of times. */
const formats = new Map<string, Intl.DateTimeFormat>();
const FORMATS_MAX = 500;

function findFormat(name: keyof typeof FORMATS, { language, timezone }: TimeReading): Intl.DateTimeFormat {
  // The console is in English, so names of weekdays are too.
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

/** Age in ms up to which the full format says how long ago the moment was. */
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

/** Formats how far a moment is from another, such as `3 h 38 min ago` or `in 2 min`. */
function formatAge(ms: number, now: number): string {
  const seconds = Math.round(Math.abs(now - ms) / 1000);
  if (seconds < 1) return "now";
  return ms < now ? `${formatDuration(seconds)} ago` : `in ${formatDuration(seconds)}`;
}
