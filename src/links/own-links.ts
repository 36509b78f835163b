import { toLinkHost } from "../../projections/link-address.ts";
import { codeIn, findLink, type Links } from "../../projections/links.ts";
import { isPersonalCode, PERSONAL_CODE_CHARS } from "../template/short-link.ts";

/** A text that may be a code, without other characters that were glued to it. */
const WORD = /[A-Za-z0-9]+/g;

/** Finds texts in the short code of a click that have the form of a personal code; usually there are none. */
export function listPersonalCodes(shortCode: string): readonly string[] {
  if (shortCode.length < PERSONAL_CODE_CHARS) return NONE;
  return shortCode.match(WORD)?.filter(isPersonalCode) ?? NONE;
}

const NONE: readonly string[] = [];

/** The personal link that a click names, with its code as `own`. Undefined if it names none. */
export function findOwnLink(links: Links, shortCode: string, codes = listPersonalCodes(shortCode)) {
  for (const own of [codeIn(shortCode), ...codes]) {
    const link = findLink(links, own);
    if (link?.recipient !== undefined) return { ...link, recipient: link.recipient, own };
  }
  return undefined;
}

/** True if short links are at this host, in any spelling of the domain. */
export function isLinkHost({ hosts }: Links, domain: string): boolean {
  return hosts.has(toLinkHost(domain));
}
