import type { Folded } from "../events/catalog.ts";
import type { Recipient } from "../events/outreach.ts";
import { toLinkHost } from "./link-address.ts";
import type { Projection } from "./projection.ts";

/** A link in messages, or one that an operator added. */
export interface SharedLink {
  /** Host and path that come before the code. */
  readonly domain: string;
  readonly target: string;
  /** Template of the messages that contain it; absent if an operator added it. */
  readonly template?: string;
  readonly variant?: string;
  /** ISO 8601. */
  readonly added_at: string;
}

/** A recipient's own link. */
interface PersonalLink {
  /** The code of the shared link that has the same target. */
  readonly code: string;
  readonly recipient: Recipient;
}

/** Short links by their codes. */
export interface Links {
  shared: Map<string, SharedLink>;
  personal: Map<string, PersonalLink>;
  /** Host, as {@link toLinkHost} writes it -> how many shared links it has. */
  hosts: Map<string, number>;
}

export const links: Projection<Links> = {
  name: "links",
  version: 2,
  types: ["LinkAdded", "DirectMessageAttempted"],
  initial: () => ({ shared: new Map(), personal: new Map(), hosts: new Map() }),
  evolve(state, event) {
    evolveLinks(state, event);
    return state;
  },
};

function evolveLinks({ shared, personal, hosts }: Links, event: Folded): void {
  switch (event.type) {
    case "LinkAdded": {
      const { code, domain, target, template, variant } = event.data;
      const holder = template === undefined || variant === undefined ? {} : { template, variant };
      if (shared.has(code)) return;
      shared.set(code, { domain, target, ...holder, added_at: event.time });
      const host = toLinkHost(domain);
      hosts.set(host, (hosts.get(host) ?? 0) + 1);
      return;
    }
    case "DirectMessageAttempted": {
      const { recipient, personal_links = [] } = event.data;
      for (const { code, link } of personal_links) personal.set(code, { code: codeIn(link), recipient });
      return;
    }
    default:
  }
}

/** The code of a link, as clicks and intents name it: the part after the last slash. */
export function codeIn(link: string): string {
  return link.slice(link.lastIndexOf("/") + 1);
}

/**
 * Returns the link of a code; undefined if the log does not know the code. `recipient`: the owner of a personal link.
 */
export function findLink(
  { shared, personal }: Links,
  code: string,
): (SharedLink & { readonly code: string; readonly recipient: Recipient | undefined }) | undefined {
  const own = personal.get(code);
  const known = own?.code ?? code;
  const link = shared.get(known);
  return link && { ...link, code: known, recipient: own?.recipient };
}
