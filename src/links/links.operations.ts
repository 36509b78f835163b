import { Type } from "@sinclair/typebox";
import { formatTemplate } from "../../projections/results.ts";
import { count, orNull, text, time } from "../platform/common-schemas.ts";
import { countInWords } from "../platform/counts-and-lists.ts";
import { operation, pageInput } from "../platform/operation.ts";
import { asOf, asOfInput, describeMomentJson, toMomentJson, type LogReader } from "../projector/log-reader.ts";

/** Links of one answer. */
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
    // Links are never removed, so the number of those before is a place.
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
