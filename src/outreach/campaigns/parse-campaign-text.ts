import { TemplateError } from "../../template/parse-parts.ts";
import { parseTemplate, type Template } from "../../template/template.ts";

/** A campaign's text, parsed with the settings of now. */
export interface CampaignText {
  /**
   * The message. If there is a fault, stand-ins replace the missing addresses, so that pages and counts can use the
   * message; no run sends it.
   */
  readonly template: Template;
  /** Why no run may send the text, such as an address that the settings lack. Undefined if a run may. */
  readonly textFault: string | undefined;
}

interface Addresses {
  readonly linkBase?: string | undefined;
  readonly optOutBase?: string | undefined;
}

/** Stand-in for an address that the settings lack. */
const NO_ADDRESS = "https://unset.invalid";

/** A campaign's definition, which never changes in place: each event about the campaign makes a new one. */
interface Definition {
  readonly name: string;
  readonly text: string;
}

/**
 * Cache of each definition's last parsed text, because a what-if decides about 100,000 recipients of one campaign, and
 * so reads the text as often.
 */
const parsed = new WeakMap<Definition, Addresses & { readonly found: CampaignText }>();

/**
 * Parses a campaign's text, once for each definition and addresses. The log may hold one that the present settings
 * cannot send, because an operator removed `PUBLIC_URL` or `LINK_BASE` since.
 */
export function readCampaignText(definition: Definition, { linkBase, optOutBase }: Addresses): CampaignText {
  const last = parsed.get(definition);
  if (last !== undefined && last.linkBase === linkBase && last.optOutBase === optOutBase) return last.found;
  const found = parseText(definition, { linkBase, optOutBase });
  parsed.set(definition, { linkBase, optOutBase, found });
  return found;
}

function parseText({ name, text }: Definition, { linkBase, optOutBase }: Addresses): CampaignText {
  const parse = (links: string | undefined, optOuts: string | undefined): Template | TemplateError => {
    try {
      return parseTemplate(text, links, name, optOuts);
    } catch (fault) {
      if (!(fault instanceof TemplateError)) throw fault;
      return fault;
    }
  };
  const found = parse(linkBase, optOutBase);
  if (!(found instanceof TemplateError)) return { template: found, textFault: undefined };
  const shown = parse(linkBase ?? NO_ADDRESS, optOutBase ?? NO_ADDRESS);
  const template = shown instanceof TemplateError ? parseTemplate("-", linkBase, name, optOutBase) : shown;
  return { template, textFault: found.message };
}
