/**
 * Names in lower case -> names as the runtime spells them. The cache is needed because a list may name one zone a
 * million times.
 */
const known = new Map<string, string>();

/**
 * The IANA name of a time zone as the runtime spells it. Undefined if there is no such zone. Offsets such as +02:00 are
 * refused, because they have no daylight saving time.
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
