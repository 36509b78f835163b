/**
 * A time of one weekday in which messages may go out, in minutes since midnight: from `from` to before `to`. `day`: 1
 * for Monday to 7 for Sunday.
 */
export interface OpenHours {
  readonly day: number;
  readonly from: number;
  readonly to: number;
}

/** When messages may go out, in local times. */
export interface SendWindow {
  /** The send window as the operator wrote it. */
  readonly text: string;
  readonly hours: readonly OpenHours[];
  /** Time zone in which the hours count: `quota` is QUOTA_TIMEZONE, `recipient` the recipient's own if it is known. */
  readonly zone: "quota" | "recipient";
  readonly whenClosed: "pause" | "end";
}

/** Creates a send window from a text that the configuration has checked. */
export function toSendWindow(window: Omit<SendWindow, "hours">): SendWindow {
  return { ...window, hours: window.text.split(",").flatMap((entry) => parseOpenHours(entry) ?? []) };
}

const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

const DAY_MINUTES = 24 * 60;

const ENTRY = /^([a-z]{3})(?:\s*-\s*([a-z]{3}))?\s+(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})$/;

/**
 * Parses an entry of a send window, such as `Mon-Fri 09:00-17:00`; undefined if it is invalid. An end that is earlier
 * than the start is on the next day.
 */
export function parseOpenHours(entry: string): readonly OpenHours[] | undefined {
  const match = ENTRY.exec(entry.trim().toLowerCase());
  if (match === null) return undefined;
  const [, firstDay = "", lastDay = firstDay, ...digits] = match;
  const [first, last] = [DAYS.indexOf(firstDay), DAYS.indexOf(lastDay)];
  const [from, to] = [toMinutes(digits[0], digits[1]), toMinutes(digits[2], digits[3])];
  if (first === -1 || last === -1 || from === undefined || to === undefined) return undefined;
  if (from === to || from === DAY_MINUTES) return undefined;
  const days = Array.from({ length: ((last - first + 7) % 7) + 1 }, (_, nth) => (first + nth) % 7);
  return days.flatMap((day) => {
    if (from < to) return [{ day: day + 1, from, to }];
    const evening = { day: day + 1, from, to: DAY_MINUTES };
    return to === 0 ? [evening] : [evening, { day: ((day + 1) % 7) + 1, from: 0, to }];
  });
}

/** Converts a time of day to minutes since midnight. 24:00 is the end of a day. Undefined if there is no such time. */
function toMinutes(hours = "", minutes = ""): number | undefined {
  const sum = Number(hours) * 60 + Number(minutes);
  return Number(minutes) < 60 && sum <= DAY_MINUTES ? sum : undefined;
}
