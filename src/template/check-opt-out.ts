import { linksOptOut, type Template } from "./template.ts";

/**
 * Warning about opt-outs on X. Since July 2026 Chat, X's encrypted messages, has a separate API, and X's documentation
 * calls the endpoints that this service reads legacy: https://docs.x.com/xchat/introduction
 */
const UNREAD =
  "X may not show replies written in X Chat, its encrypted messages: a stop word in them is not read, and they are not counted as replies";

/**
 * Checks if each variant of a template offers a way to opt out: `{{optout}}`, or a sentence with a stop word. `detail`
 * tells the operator what is missing, or what a stop word alone does not cover. `isSure`: each variant has `{{optout}}`.
 */
export function checkOptOut({ variants }: Template, hasStopWord: (text: string) => boolean) {
  const unlinked = variants.filter((variant) => !linksOptOut(variant));
  const without = unlinked.filter(({ parts }) => !parts.some((part) => typeof part === "string" && hasStopWord(part)));
  if (without.length > 0) {
    const detail = `Variants without a way to opt out: ${listLabels(without)}. Add {{optout}}, or a sentence with one of STOP_WORDS`;
    return { isOffered: false, isSure: false, detail };
  }
  if (unlinked.length === 0)
    return { isOffered: true, isSure: true, detail: "Each variant links the recipient's page to opt out" };
  return {
    isOffered: true,
    isSure: false,
    detail: `${UNREAD}. Variants with a stop word and without {{optout}}: ${listLabels(unlinked)}`,
  };
}

function listLabels(variants: Template["variants"]): string {
  return variants.map(({ label }) => label).join(", ");
}
