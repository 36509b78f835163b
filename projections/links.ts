import type { Folded } from "../events/event-types-and-codec.ts";
import type { Recipient } from "../events/outreach.ts";
import { toLinkHost } from "./normalize-link.ts";
import type { Projection } from "./projection.ts";

/** Short link that messages contain, or that an operator added. */
export interface SharedLink {
  /** Host and path that come before the link's code. */
  readonly domain: string;
  readonly target: string;
  /** Template of the messages that contain the link; absent if an operator added it. */
  readonly template?: string;
  readonly variant?: string;
  /** Time at which the link was added, ISO 8601. */
  readonly added_at: string;
}

/** A recipient's own link. */
interface PersonalLink {
  /** Code of the shared link that this one replaces in the message to `recipient`. Both lead to the same target. */
  readonly code: string;
  readonly recipient: Recipient;
}

/** Owner of a page to opt out, and the account whose message links the page. */
interface OptOutPage {
  readonly recipient: Recipient;
  /** Id of the account; absent for an older message, whose events do not name it. */
  readonly account_id?: string;
}

/** Short links by their codes, shared and personal ones separately. */
export interface Links {
  shared: Map<string, SharedLink>;
  personal: Map<string, PersonalLink>;
  /** Recipients' pages to opt out, by their codes. */
  optOuts: Map<string, OptOutPage>;
  /** Host, as {@link toLinkHost} writes it -> how many shared links it has. */
  hosts: Map<string, number>;
}

export const links: Projection<Links> = {
  name: "links",
  version: 3,
  types: ["LinkAdded", "DirectMessageAttempted"],
  initial: () => ({ shared: new Map(), personal: new Map(), optOuts: new Map(), hosts: new Map() }),
  evolve(state, event) {
    evolveLinks(state, event);
    return state;
  },
};

function evolveLinks({ shared, personal, optOuts, hosts }: Links, event: Folded): void {
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
      const { recipient, personal_links = [], opt_out_code, account_id } = event.data;
      for (const { code, link } of personal_links) personal.set(code, { code: codeIn(link), recipient });
      if (opt_out_code !== undefined)
        optOuts.set(opt_out_code, { recipient, ...(account_id === undefined ? {} : { account_id }) });
      return;
    }
    default:
  }
}

/** Returns the code of a link, as clicks and messages name the link: the part after its last slash. */
export function codeIn(link: string): string {
  return link.slice(link.lastIndexOf("/") + 1);
}

/**
 * Returns the link of a code; undefined if the log does not know the code. `recipient` is the owner if it is a personal
 * link.
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
