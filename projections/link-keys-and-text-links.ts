import { normalizeLink, splitLink } from "./normalize-link.ts";

/** Maximum number of links that are looked for in a text; a message is about one link. */
const LINKS_PER_TEXT_MAX = 10;

/** Length of the longest link that a click can have: domain and short code at their longest. */
export const LINK_CHARACTERS_MAX = 253 + 1 + 128;

const BETWEEN_WORDS = /[\s()<>[\]{}"'`,;|]+/u;
const SCHEME = /https?:\/\//i;

/** Punctuation after a link that belongs to the sentence and not to the link. */
const PUNCTUATION_BEHIND = /[.:!?*…”’»]+$/u;

/** Returns the links that a text contains, with or without a scheme, as {@link linkKey} writes them; each once. */
export function linksIn(text: string): readonly string[] {
  const links = new Set<string>();
  for (const word of text.split(BETWEEN_WORDS)) {
    const link = linkOf(word);
    if (link !== undefined) links.add(link);
    if (links.size === LINKS_PER_TEXT_MAX) break;
  }
  return [...links];
}

/** Returns the name by which a link is counted, the same for every spelling of its domain and code. */
export function linkKey(domain: string, shortCode: string): string {
  return namesOf(domain, shortCode).key;
}

/**
 * Returns the link's domain and code exactly as the click's event has them, not normalized. Older versions used this
 * text in the name of the stream that holds the link's clicks.
 */
export function linkSpelling(domain: string, shortCode: string): string {
  return namesOf(domain, shortCode).spelling;
}

/**
 * Cache of the names of the last link. Clicks on one link come in series, several projections ask for its names each
 * time, and making a name costs as much as counting the click.
 */
const last = { domain: "", shortCode: "", key: "//", spelling: "/" };

function namesOf(domain: string, shortCode: string): { readonly key: string; readonly spelling: string } {
  if (shortCode === last.shortCode && domain === last.domain) return last;
  const link = normalizeLink(domain, shortCode);
  last.domain = domain;
  last.shortCode = shortCode;
  last.key = `${link.domain}/${link.shortCode}`;
  const isNormal = link.domain === domain && link.shortCode === shortCode;
  last.spelling = isNormal ? last.key : `${domain}/${shortCode}`;
  return last;
}

/** Returns the name by which a link is counted, from the link as one text, with or without a scheme. */
export function toLinkKey(link: string): string {
  return linkKey(...splitLink(link));
}

/** Returns the links of a message. Events of older messages have no list of links, or list them in other spellings. */
export function linksOf({ text, links }: { readonly text: string; readonly links?: readonly string[] }) {
  return links === undefined ? linksIn(text) : [...new Set(links.map(toLinkKey))];
}

function linkOf(word: string): string | undefined {
  const scheme = SCHEME.exec(word);
  const address = scheme === null ? word : word.slice(scheme.index + scheme[0].length);
  const [path = ""] = address.split(/[?#]/, 1);
  const slash = path.indexOf("/");
  if (slash < 1 || path.length > LINK_CHARACTERS_MAX) return undefined;
  const domain = path.slice(0, slash);
  const shortCode = path.slice(slash + 1).replace(PUNCTUATION_BEHIND, "");
  // In a text without a scheme, only the dot distinguishes a domain with a path from words such as "and/or".
  if (shortCode === "" || domain.includes("@") || (scheme === null && !domain.includes("."))) return undefined;
  return linkKey(domain, shortCode);
}
