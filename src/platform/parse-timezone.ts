/**
 * Cache of time zones by name in lower case, each in the runtime's spelling. It is needed because a list of recipients
 * may name one zone a million times.
 */
const known = new Map<string, string>();

/**
 * Returns the IANA name of a time zone in the runtime's spelling. Undefined if there is no such zone, and for an offset
 * such as +02:00, because an offset has no daylight saving time.
 */
export function parseTimezone(raw: string): string | undefined {
  const key = raw.toLowerCase();
  const found = known.get(key);
  if (found !== undefined || !/^[a-z]/.test(key)) return found;
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: raw }).resolvedOptions();
    known.set(key, timeZone);
    return timeZone;
  } catch {
    return undefined;
  }
}
