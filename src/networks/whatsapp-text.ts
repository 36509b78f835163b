import { truncate } from "./plain-text.ts";

/** Characters of a text's body, counted in UTF-16 units, which are never fewer. */
const TEXT_UNITS_MAX = 4_096;

/** The formatting characters, and what looks like each without being one. */
const LOOK_ALIKES: Readonly<Record<string, string>> = { "*": "∗", _: "ˍ", "~": "∼", "`": "ˋ" };

/** What WhatsApp makes a link of, with a scheme or without; inside of it nothing is formatted. */
const LINK = /https?:\/\/\S+|(?<![\p{L}\d])(?:[\p{L}\d-]+\.)+\p{L}{2,}\/\S*/giu;

/** At the beginning of a line a quotation, which shows as a bar beside what follows. */
const QUOTE = /^>(?= )/gm;

/**
 * Foreign text as a body that shows as it was written. WhatsApp has no escape, and what its apps make of invisible
 * characters beside a marker is nowhere stated, so markers become look-alikes; all of them are one unit, as the
 * markers are. A marker that stands alone formats nothing, and links have to stay what they are.
 */
export function whatsappText(text: string): string {
  const short = truncate(text, TEXT_UNITS_MAX).replace(QUOTE, "›");
  const repeated = Object.keys(LOOK_ALIKES).filter((marker) => short.split(marker).length > 2);
  const links = [...short.matchAll(LINK)];
  let shown = "";
  let from = 0;
  for (const { index, 0: link } of links) {
    shown += disarm(short.slice(from, index), repeated) + link;
    from = index + link.length;
  }
  return shown + disarm(short.slice(from), repeated);
}

function disarm(text: string, markers: readonly string[]): string {
  return text.replace(/[*_~`]/g, (marker) => (markers.includes(marker) ? (LOOK_ALIKES[marker] ?? marker) : marker));
}
