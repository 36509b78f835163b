import { toLinkHost } from "../../projections/link-address.ts";
import { codeIn, findLink, type Links } from "../../projections/links.ts";
import { isPersonalCode, PERSONAL_CODE_CHARS } from "../template/short-link.ts";

/** All that may be a code: whatever was glued to one is left out. */
const WORD = /[A-Za-z0-9]+/g;

/** Finds texts with the form of a recipient's own code in the short code of a click; mostly there is none. */
export function listPersonalCodes(shortCode: string): readonly string[] {
  if (shortCode.length < PERSONAL_CODE_CHARS) return NONE;
  return shortCode.match(WORD)?.filter(isPersonalCode) ?? NONE;
}

const NONE: readonly string[] = [];

/** The recipient's own link that a click names, with its code as `own`; undefined: it names none. */
export function findOwnLink(links: Links, shortCode: string, codes = listPersonalCodes(shortCode)) {
  for (const own of [codeIn(shortCode), ...codes]) {
    const link = findLink(links, own);
    if (link?.recipient !== undefined) return { ...link, recipient: link.recipient, own };
  }
  return undefined;
}

/** True if short links are at this host, whatever the spelling of the domain. */
export function isLinkHost({ hosts }: Links, domain: string): boolean {
  return hosts.has(toLinkHost(domain));
}
