/** Control characters but tab and line feed, and the marks that turn the direction of text around. */
const INVISIBLE = /(?![\t\n])[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

const ELLIPSIS = "…";

/** Text that any network takes: no control characters, no half characters; line breaks stay, as line feeds. */
export function plainText(text: string): string {
  return text.toWellFormed().replace(/\r\n?/g, "\n").replace(INVISIBLE, "");
}

/** The same on one line, so that a value cannot pose as further lines of the message around it. */
export function oneLine(text: string): string {
  return plainText(text).replace(/\s+/g, " ").trim();
}

/** At most `maxUnits` UTF-16 units, never half a character; what was cut off is marked by an ellipsis. */
export function truncate(text: string, maxUnits: number): string {
  if (text.length <= maxUnits) return text;
  const cut = text.slice(0, maxUnits - ELLIPSIS.length);
  return cut.replace(/[\ud800-\udbff]$/, "") + ELLIPSIS;
}
