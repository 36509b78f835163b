/** Formatting characters that two networks share, and what looks like each without being one. */
const LOOK_ALIKES: Readonly<Record<string, string>> = { "*": "∗", _: "ˍ", "~": "∼", "`": "ˋ" };

/** What these networks make a link of, with a scheme or without; inside of it nothing is formatted. */
const LINK = /https?:\/\/\S+|(?<![\p{L}\d])(?:[\p{L}\d-]+\.)+\p{L}{2,}\/\S*/giu;

/** At the beginning of a line a quotation, which shows as a bar beside what follows. */
const QUOTE = /^>(?= )/gm;

/** What makes an item of a list of a line that it begins. */
const BULLET = /^(\s*)([*-])(?= )/gm;

const BULLETS: Readonly<Record<string, string>> = { "*": "∗", "-": "‐" };

/**
 * Text that shows as it was written on a network that has no escape. What its apps make of invisible characters beside
 * a marker is nowhere stated, so markers become look-alikes; all of them are one unit, as the markers are. A marker
 * that stands alone formats nothing, and links have to stay what they are.
 */
export function withLookAlikes(text: string): string {
  const unquoted = text
    .replace(QUOTE, "›")
    .replace(BULLET, (_line, indent: string, mark: string) => indent + (BULLETS[mark] ?? mark));
  const repeated = Object.keys(LOOK_ALIKES).filter((marker) => unquoted.split(marker).length > 2);
  let shown = "";
  let from = 0;
  for (const { index, 0: link } of unquoted.matchAll(LINK)) {
    shown += disarm(unquoted.slice(from, index), repeated) + link;
    from = index + link.length;
  }
  return shown + disarm(unquoted.slice(from), repeated);
}

function disarm(text: string, markers: readonly string[]): string {
  return text.replace(/[*_~`]/g, (marker) => (markers.includes(marker) ? (LOOK_ALIKES[marker] ?? marker) : marker));
}
