import type { Template } from "./template.ts";

/**
 * A limit of opt-outs on X. Since July 2026 Chat, X's encrypted messages, has a separate API, and X's documentation
 * calls the endpoints that this service reads legacy: https://docs.x.com/xchat/introduction
 */
const UNREAD =
  "X may not show replies written in X Chat, its encrypted messages: a stop word in them is not read, and they are not counted as replies";

const FORM = "a form whose server calls POST /social/recipients/suppress";

/**
 * Checks if each variant has a link, which may lead to a form to opt out. `detail` tells the operator what to make sure
 * of.
 */
export function checkOptOut({ variants }: Template): { readonly isLinked: boolean; readonly detail: string } {
  const isLink = (part: unknown): boolean => typeof part === "string" && /https?:\/\/\S/i.test(part);
  const without = variants.filter(({ parts, links }) => links.length === 0 && !parts.some(isLink));
  if (without.length === 0)
    return { isLinked: true, detail: `${UNREAD}. Each variant has a link: make sure that one leads to ${FORM}` };
  const labels = without.map(({ label }) => label).join(", ");
  const detail = `${UNREAD}. Variants without a link: ${labels}. Name a stop word in the message, and link ${FORM}`;
  return { isLinked: false, detail };
}
