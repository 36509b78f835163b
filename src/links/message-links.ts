import type { DataOf } from "../../events/catalog.ts";
import type { Links } from "../../projections/links.ts";
import { linkKey } from "../../projections/sent-links.ts";
import type { NewEvent } from "../log/event-log.ts";
import { createPersonalCode, type ShortLink } from "../template/short-link.ts";

/**
 * The events that add those links of a message that the log does not know yet. The redirect answers them once the
 * events are appended.
 */
export function addNewLinks(
  { shared }: Links,
  links: readonly ShortLink[],
  holder: Pick<DataOf<"LinkAdded">, "template" | "template_name" | "variant">,
): NewEvent[] {
  const added = links.filter(({ code }) => !shared.has(code));
  return added.map((link) => ({ type: "LinkAdded", data: { ...link, ...holder } }));
}

/** The personal links of one recipient that replace the shared ones. `secret` is random, one for each message. */
export function toPersonalLinks(links: readonly ShortLink[], secret: string) {
  const personal_links = links.map((link) => {
    return { code: createPersonalCode(secret, link), link: linkKey(link.domain, link.code) };
  });
  return { personal_links, replaced_links: personal_links.map(({ link }) => link) };
}
