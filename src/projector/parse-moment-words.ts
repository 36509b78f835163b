/** Language, time zone and present time of the reader who typed a moment, such as `2 hours ago`, into the console. */
interface MomentReader {
  /** BCP 47 tag; names of months and the order of numbers are also those of this language. */
  readonly language: string;
  readonly timezone: string;
  /** Time in ms since 1970. A time or day without a year is the newest one before it. */
  readonly now: number;
}

/** Maximum number of characters of a text that is read as a moment. */
const CHARACTERS_MAX = 80;

const RUN = /^run #?(\d{1,9})$/;
const AGO = /^(an?|\d{1,4}) (minute|hour|day|week)s? ago$/;
const MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000 } as const;
const CLOCK = /(\d{1,2})\s?(?::|h)\s?(\d{2})(?:\s?(?::|min)\s?\d{2}(?:\s?s\b)?)?/;

/**
 * Reads a moment as people write it: `yesterday`, `9:41`, `2 hours ago`, `run 35`, or a date in the reader's format.
 * Returns a day or an instant in ISO 8601, an empty text for now, or the number of a run; undefined for anything else.
 */
export function readMomentWords(text: string, reader: MomentReader): string | { readonly run: number } | undefined {
  if (text.length > CHARACTERS_MAX) return undefined;
  const words = text.trim().toLowerCase().replaceAll(/\s+/g, " ");
  if (words === "now") return "";
  const [, run] = RUN.exec(words) ?? [];
  if (run !== undefined) return { run: Number(run) };
  const [, count, unit] = AGO.exec(words) ?? [];
  if (count !== undefined) {
    const ms = (/^an?$/.test(count) ? 1 : Number(count)) * MS[unit as keyof typeof MS];
    return toMinute(Temporal.Instant.fromEpochMilliseconds(reader.now - ms));
  }
  const clock = CLOCK.exec(words);
  const names = readNames(reader.language);
  const half = clock === null ? -1 : [names.morning, names.afternoon].findIndex((marker) => marker.test(words));
  let rest = words.replace(clock?.[0] ?? "", " ");
  if (clock !== null) rest = rest.replace(names.morning, " ").replace(names.afternoon, " ");
  const day = readDay(rest, names, reader);
  if (day === undefined) return undefined;
  if (clock === null) return day === "none" ? undefined : day.toString();
  const hour = half === -1 ? Number(clock[1]) : (Number(clock[1]) % 12) + 12 * half;
  return readClock(hour, Number(clock[2]), day, reader);
}

function readClock(
  hour: number,
  minute: number,
  day: Temporal.PlainDate | "none",
  { timezone, now }: MomentReader,
): string | undefined {
  if (hour > 23 || minute > 59) return undefined;
  const time = Temporal.PlainTime.from({ hour, minute });
  if (day !== "none") return toMinute(day.toZonedDateTime({ timeZone: timezone, plainTime: time }).toInstant());
  const today = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timezone).withPlainTime(time);
  return toMinute((today.epochMilliseconds > now ? today.subtract({ days: 1 }) : today).toInstant());
}

function toMinute(instant: Temporal.Instant): string {
  return instant.toString({ smallestUnit: "minute" });
}

/** Reads a day without a time. `none` if the text is empty; undefined if it is something else. */
function readDay(text: string, names: Names, { timezone, now }: MomentReader): Temporal.PlainDate | "none" | undefined {
  const tokens = text.match(/\d+|\p{L}+/gu) ?? [];
  if (tokens.length === 0) return "none";
  const today = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timezone).toPlainDate();
  const [word = ""] = tokens;
  if (word === "today") return today;
  if (word === "yesterday") return today.subtract({ days: 1 });
  const weekday = tokens.length === 1 ? 1 + names.weekdays.findIndex((known) => known.has(word)) : 0;
  if (weekday > 0) return today.subtract({ days: ((today.dayOfWeek - weekday + 6) % 7) + 1 });
  const numbers = tokens.filter((token) => /^\d/.test(token)).map(Number);
  const month = 1 + names.months.findIndex((known) => tokens.some((token) => known.has(token)));
  const isKnown = (token: string) => /^\d/.test(token) || names.words.has(token);
  if (!tokens.every(isKnown)) return undefined;
  const year = numbers.find((number) => number > 999);
  const small = numbers.filter((number) => number <= 31);
  if (small.length !== (month === 0 ? 2 : 1)) return undefined;
  const [first = 0, second = 0] = small;
  const isYearFirst = numbers[0] === year;
  if (month === 0 && /\d\/\d+\/\d{4}/.test(text) && first !== second && first <= 12 && second <= 12) return undefined;
  // If the numbers are divided by dots, the day stands first in every language. A number above 12 is no month.
  const isMonthFirst =
    isYearFirst || (second > 12 ? first <= 12 : names.isMonthFirst && first <= 12 && !isDotted(text));
  const date =
    month > 0 ? { month, day: first } : isMonthFirst ? { month: first, day: second } : { month: second, day: first };
  try {
    const found = Temporal.PlainDate.from({ year: year ?? today.year, ...date }, { overflow: "reject" });
    const isLater = year === undefined && Temporal.PlainDate.compare(found, today) > 0;
    return isLater ? found.subtract({ years: 1 }) : found;
  } catch {
    return undefined;
  }
}

function isDotted(text: string): boolean {
  return /\d\.\s?\d/.test(text);
}

/** The words that dates and times of a language are written with, in lower case. */
interface Names {
  readonly months: readonly ReadonlySet<string>[];
  /** Names of the weekdays, Monday first. */
  readonly weekdays: readonly ReadonlySet<string>[];
  /** All words of dates, also those of weekdays. */
  readonly words: ReadonlySet<string>;
  /** Matches a mark of the first half of the day, such as `am`, but not within a word such as `Samstag`. */
  readonly morning: RegExp;
  /** Matches a mark of the second half of the day. */
  readonly afternoon: RegExp;
  /** True if the month stands before the day in numbers. */
  readonly isMonthFirst: boolean;
}

/** Returns the names that dates in a language, or in English, are written with, and the order of their numbers. */
function readNames(language: string): Names {
  if (newest?.language !== language) newest = { language, names: collectNames(language) };
  return newest.names;
}

/** Cache of the names for the language that was asked for last, because collecting them takes 10 ms. */
let newest: { readonly language: string; readonly names: Names } | undefined;

function collectNames(language: string): Names {
  const languages = ["en-GB", "en-US", language];
  const namesOn = (dates: readonly number[], options: Intl.DateTimeFormatOptions): ReadonlySet<string> => {
    const found = languages.flatMap((locale) => {
      const format = new Intl.DateTimeFormat(locale, { ...options, timeZone: "UTC" });
      return dates.flatMap(
        (date) =>
          format
            .format(date)
            .toLowerCase()
            .match(/\p{L}+/gu) ?? [],
      );
    });
    return new Set(found);
  };
  const months = Array.from({ length: 12 }, (_, month) => {
    const dates = [Date.UTC(2026, month, 1)];
    const named = [...namesOn(dates, { month: "short" }), ...namesOn(dates, { month: "long" })];
    const dated = [...namesOn(dates, { day: "numeric", month: "short" })];
    return new Set([...named, ...dated]);
  });
  // Words that stand in the dates of all months name no month, such as the Japanese words for month and day.
  const shared = [...months[0]!].filter((word) => months.every((known) => known.has(word)));
  const week = Array.from({ length: 7 }, (_, day) => Date.UTC(2026, 0, 5 + day));
  const weekdays = week.map((day) => namesOn([day], { weekday: "short" }).union(namesOn([day], { weekday: "long" })));
  const dated = [...namesOn(week, { dateStyle: "long" })];
  for (const known of months) for (const word of shared) known.delete(word);
  const words = new Set([...[...months, ...weekdays].flatMap((known) => [...known]), ...shared, ...dated]);
  const parts = new Intl.DateTimeFormat(language, { day: "numeric", month: "numeric" }).formatToParts();
  const [day, month] = ["day", "month"].map((type) => parts.findIndex((part) => part.type === type)) as [
    number,
    number,
  ];
  const periodAt = (hour: number): RegExp => {
    const marks = languages.flatMap((locale) =>
      new Intl.DateTimeFormat(locale, { hour: "numeric", hour12: true, timeZone: "UTC" })
        .formatToParts(Date.UTC(2026, 0, 1, hour))
        .flatMap(({ type, value }) => (type === "dayPeriod" ? [value.toLowerCase()] : [])),
    );
    return new RegExp(
      `(?<!\\p{Script=Latin})(?:${marks.map((one) => RegExp.escape(one)).join("|")})(?!\\p{Script=Latin})`,
      "u",
    );
  };
  return { months, weekdays, words, morning: periodAt(9), afternoon: periodAt(15), isMonthFirst: month < day };
}
