import { Type } from "@sinclair/typebox";
import { formatTemplate } from "../../projections/message-outcomes-and-reactions.ts";
import { count, orNull, text, time } from "../platform/common-schemas.ts";
import { countInWords } from "../platform/format-numbers-and-lists.ts";
import { operation, pageInput, refusal, refuse } from "../platform/operation.ts";
import {
  asOf,
  asOfInput,
  describeMomentJson,
  toMomentJson,
  type LogReader,
} from "../projector/operation-states-as-of.ts";
import { toDomain } from "../template/short-link.ts";
import { addLinks, CODE, CODE_CHARS_MAX, FULL, TAKEN } from "./add-operator-links.ts";
import type { Reachlog } from "../privacy/log-context-types.ts";

/** Number of links in one answer, by default. */
const LINKS_SHOWN = 100;
const LINKS_SHOWN_MAX = 1_000;

export const listLinks = operation({
  name: "links list",
  id: "listLinks",
  tag: "tracking",
  access: ["session", "read"],
  summary: "List the links that operators and messages added.",
  description: "The oldest first. Links of one recipient's own are not listed.",
  personalRead: false,
  input: { ...pageInput(LINKS_SHOWN, LINKS_SHOWN_MAX), ...asOfInput },
  output: {
    links: Type.Array(
      Type.Object({
        link: text("go.example/welcome"),
        target: text("https://shop.example/"),
        template: orNull(text("6f0e8b2a4c11")),
        template_name: orNull(text("Autumn invite")),
        variant: orNull(text("A")),
        added_at: time,
      }),
    ),
    count,
    next: orNull(count),
    ...asOf,
  },
  list: "links",
  async run({ at }: LogReader, { limit = LINKS_SHOWN, after = 0, as_of }) {
    const found = await at(as_of, "links", "results");
    const { links, results } = found.states;
    // Links are never removed, so the number of links before a page says where the page begins.
    const page = links.shared.entries().drop(after).take(limit).toArray();
    const end = after + page.length;
    return {
      links: page.map(([code, { domain, target, variant = null, added_at, template = null }]) => ({
        link: `${domain}/${code}`,
        target,
        template,
        template_name: template === null ? null : (results.templates.get(template) ?? null),
        variant,
        added_at,
      })),
      count: links.shared.size,
      next: end < links.shared.size ? end : null,
      as_of: toMomentJson(found),
    };
  },
  table({ links }) {
    const named = links.flatMap(({ template, template_name: name }) => (template && name ? [[template, name]] : []));
    const templates = new Map(named as [string, string][]);
    const rows = links.map(({ link, template, variant, target }) => [
      link,
      template === null ? "-" : formatTemplate({ templates }, template),
      variant ?? "-",
      target,
    ]);
    return { head: ["link", "template", "variant", "target"], rows };
  },
  text({ count: all, next, as_of }) {
    const more = next === null ? "" : `; --after ${next} lists more`;
    return `(${countInWords(all, "link")}${more}; ${describeMomentJson(as_of)})\n`;
  },
  examples: ["--json"],
});

function toRefusal(reason: string) {
  if (reason === TAKEN) return "code_taken";
  return reason === FULL ? "too_many_links" : "unusable_link";
}

/** Maximum length of a link's target URL, in characters. */
const TARGET_CHARS_MAX = 4_096;

export const addLink = operation({
  name: "links add",
  id: "addLink",
  tag: "tracking",
  access: ["token", "admin"],
  summary: "Add a short link for the redirect.",
  description:
    "The redirect answers it while REDIRECTS is on. A repeat changes nothing; a code never gets another target.",
  personalRead: false,
  input: {
    code: Type.String({
      pattern: CODE,
      description: `1 to ${CODE_CHARS_MAX} letters, digits, _ or -`,
      examples: ["spring"],
    }),
    target: Type.String({
      maxLength: TARGET_CHARS_MAX,
      description: "An http or https URL",
      examples: ["https://shop.example/offer"],
    }),
  },
  positional: ["code", "target"],
  output: { link: text("go.example/spring"), known: Type.Boolean({ description: "True if the log had it before." }) },
  refusals: {
    unusable_link: refusal("invalid", "{code} was not added: {reason}."),
    code_taken: refusal("conflict", "{code} was not added: {reason}."),
    too_many_links: refusal("conflict", "{code} was not added: {reason}."),
    no_link_base: refusal("configuration", "LINK_BASE is not set, and REDIRECTS is off."),
  },
  async run(context: Reachlog, link, caller) {
    const { base } = context.config.links;
    if (base === undefined) return "no_link_base";
    const domain = toDomain(base);
    const { known, refused } = await addLinks(context, domain, [link], caller);
    const [fault] = refused;
    if (fault !== undefined) return refuse(toRefusal(fault.reason), { code: link.code, reason: fault.reason });
    return { link: `${domain}/${link.code}`, known: known > 0 };
  },
  text: ({ link, known }) => `${link} ${known ? "was known before" : "was added"}.`,
  examples: ["spring https://shop.example/offer"],
});
