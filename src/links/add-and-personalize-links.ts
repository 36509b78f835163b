import type { Links } from "../../projections/links.ts";
import { linkKey } from "../../projections/link-keys-and-text-links.ts";
import type { NewEvent } from "../log/event-log.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import { createPersonalCode, type ShortLink } from "../template/short-link.ts";
import { linksOptOut, render, type MessageRecipient, type Template } from "../template/template.ts";

/** Template and variant whose messages contain a link. */
interface LinkHolder {
  readonly template?: string;
  readonly template_name?: string;
  readonly variant?: string;
}

/**
 * Returns the events that add those links of a message that the log does not know yet. The redirect answers the links
 * once the events are appended.
 */
export function addNewLinks({ shared }: Links, links: readonly ShortLink[], holder: LinkHolder): NewEvent[] {
  const added = links.filter(({ code }) => !shared.has(code));
  return added.map((link) => ({ type: "LinkAdded", data: { ...link, ...holder } }));
}

/**
 * Returns the personal links of one recipient, which replace the shared ones in their message. `secret`: random text,
 * one for each message.
 */
export function toPersonalLinks(links: readonly ShortLink[], secret: string) {
  const personal_links = links.map((link) => {
    return { code: createPersonalCode(secret, link), link: linkKey(link.domain, link.code) };
  });
  return { personal_links, replaced_links: personal_links.map(({ link }) => link) };
}

/** Secrets from which the codes of one recipient are made; undefined if their message has no such codes. */
interface OwnSecrets {
  /** Random text from which the codes of the recipient's own links are derived. */
  readonly secret: string | undefined;
  /** Code of the recipient's page to opt out. */
  readonly optOutCode: string | undefined;
}

/**
 * Returns the members of a message's intent that hold codes of this recipient alone, with the text that contains the
 * codes. Undefined if the message has no such codes. `shared`: the links and variant of the message without them.
 */
export function writeOwnCodes(
  template: Template,
  to: MessageRecipient,
  shared: { readonly links: readonly ShortLink[]; readonly variant: string },
  { secret, optOutCode }: OwnSecrets,
) {
  const { links } = shared;
  const isLinked = secret !== undefined && links.length > 0;
  const chosen = template.variants.find(({ label }) => label === shared.variant);
  const opt_out_code = chosen !== undefined && linksOptOut(chosen) ? optOutCode : undefined;
  if (!isLinked && opt_out_code === undefined) return undefined;
  const codeFor = isLinked ? (link: ShortLink) => createPersonalCode(secret, link) : undefined;
  const rendered = render(template, to, codeFor, opt_out_code);
  if (!rendered.ok) return undefined;
  const own = isLinked ? toPersonalLinks(links, secret) : {};
  return { text: rendered.text, ...own, ...omitUndefined({ opt_out_code }) };
}
