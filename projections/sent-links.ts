/** A message is about one link; more than these are not looked for. */
const LINKS_PER_TEXT_MAX = 10;

/** The longest link that a click can have: domain and short code at their longest. */
export const LINK_CHARACTERS_MAX = 253 + 1 + 128;

const BETWEEN_WORDS = /[\s()<>[\]{}"'`,;|]+/u;
const SCHEME = /https?:\/\//i;

/** Ends the sentence, and not the link. */
const PUNCTUATION_BEHIND = /[.:!?*…”’»]+$/u;

/** The links that a text holds, with or without a scheme, as {@link linkKey} writes them; each once. */
export function linksIn(text: string): readonly string[] {
  const links = new Set<string>();
  for (const word of text.split(BETWEEN_WORDS)) {
    const link = linkOf(word);
    if (link !== undefined) links.add(link);
    if (links.size === LINKS_PER_TEXT_MAX) break;
  }
  return [...links];
}

/** How a link is named where its clicks are counted: as they told of it. */
export function linkName(domain: string, shortCode: string): string {
  return namesOf(domain, shortCode).name;
}

/** A domain is the same in either case of its letters; a short code is not. */
export function linkKey(domain: string, shortCode: string): string {
  return namesOf(domain, shortCode).key;
}

/** Clicks on a link come together, and several projections name each: to make a name costs as much as to count the click. */
const last = { domain: "", shortCode: "", name: "/", key: "/" };

function namesOf(domain: string, shortCode: string): { readonly name: string; readonly key: string } {
  if (shortCode === last.shortCode && domain === last.domain) return last;
  last.domain = domain;
  last.shortCode = shortCode;
  last.name = `${domain}/${shortCode}`;
  last.key = `${domain.toLowerCase()}/${shortCode}`;
  return last;
}

function linkOf(word: string): string | undefined {
  const scheme = SCHEME.exec(word);
  const address = scheme === null ? word : word.slice(scheme.index + scheme[0].length);
  const [path = ""] = address.split(/[?#]/, 1);
  const slash = path.indexOf("/");
  if (slash < 1 || path.length > LINK_CHARACTERS_MAX) return undefined;
  const domain = path.slice(0, slash);
  const shortCode = path.slice(slash + 1).replace(PUNCTUATION_BEHIND, "");
  // Without a scheme only its dot tells a domain from "and/or".
  if (shortCode === "" || domain.includes("@") || (scheme === null && !domain.includes("."))) return undefined;
  return linkKey(domain, shortCode);
}
