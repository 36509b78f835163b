import { toLinkHost } from "../../projections/normalize-link.ts";
import { codeIn, findLink, type Links } from "../../projections/links.ts";
import { isPersonalCode, PERSONAL_CODE_CHARS } from "../template/short-link.ts";

/** Matches a text that may be a link's code, without the punctuation around it. */
const WORD = /[A-Za-z0-9]+/g;

/**
 * Finds texts in the short code of a click that look like the code of a recipient's own link; usually there are none.
 */
export function listPersonalCodes(shortCode: string): readonly string[] {
  if (shortCode.length < PERSONAL_CODE_CHARS) return NONE;
  return shortCode.match(WORD)?.filter(isPersonalCode) ?? NONE;
}

const NONE: readonly string[] = [];

/**
 * Finds the personal link that a click's short code names, with the link's code as `own`. Undefined if it names none.
 */
export function findOwnLink(links: Links, shortCode: string, codes = listPersonalCodes(shortCode)) {
  for (const own of [codeIn(shortCode), ...codes]) {
    const link = findLink(links, own);
    if (link?.recipient !== undefined) return { ...link, recipient: link.recipient, own };
  }
  return undefined;
}

/** True if the service's short links are at this host, in any spelling of the domain. */
export function isLinkHost({ hosts }: Links, domain: string): boolean {
  return hosts.has(toLinkHost(domain));
}
