import { Type } from "@sinclair/typebox";
import { count, orNull, text, time } from "../platform/common-schemas.ts";
import { countInWords } from "../platform/counts-and-lists.ts";
import { operation } from "../platform/operation.ts";
import { asOf, asOfInput, describeMomentJson, toMomentJson, type LogReader } from "../projector/log-reader.ts";

/** Links of one answer. */
const LINKS_SHOWN = 1_000;
const LINKS_SHOWN_MAX = 10_000;

export const listLinks = operation({
  name: "links list",
  id: "listLinks",
  tag: "tracking",
  access: ["session", "read"],
  summary: "List the links that operators and messages added.",
  description:
    "The oldest first. A link of one recipient alone is not among them: with its code, other people could click as that recipient.",
  personalRead: false,
  input: {
    limit: Type.Optional(
      Type.Integer({
        title: "number",
        minimum: 1,
        maximum: LINKS_SHOWN_MAX,
        description: `How many; default: ${LINKS_SHOWN}`,
      }),
    ),
    after: Type.Optional(
      Type.Integer({ title: "number", minimum: 1, description: "Only links after so many: the `next` of an answer" }),
    ),
    ...asOfInput,
  },
  output: {
    links: Type.Array(
      Type.Object({
        link: text("go.example/welcome"),
        target: text("https://shop.example/"),
        template: orNull(text("0123456789ab")),
        template_name: orNull(text("spring")),
        variant: orNull(text("A")),
        added_at: time,
      }),
    ),
    count,
    next: orNull(count),
    ...asOf,
  },
  async run({ at }: LogReader, { limit = LINKS_SHOWN, after = 0, as_of }) {
    const found = await at(as_of, "links", "results");
    const { links, results } = found.states;
    const page = [...links.shared.entries().drop(after).take(limit)];
    const last = after + page.length;
    return {
      links: page.map(([code, { domain, target, template = null, variant = null, added_at }]) => {
        const template_name = template === null ? null : (results.templates.get(template) ?? null);
        return { link: `${domain}/${code}`, target, template, template_name, variant, added_at };
      }),
      count: links.shared.size,
      next: last < links.shared.size ? last : null,
      as_of: toMomentJson(found),
    };
  },
  table({ links }) {
    const idsByName = Map.groupBy(links, ({ template_name }) => template_name);
    const toLabel = ({ template, template_name }: (typeof links)[number]): string => {
      if (template_name === null) return template ?? "-";
      const isAlone = idsByName.get(template_name)?.every((other) => other.template === template) !== false;
      return isAlone ? template_name : `${template_name} (${template})`;
    };
    return {
      head: ["link", "template", "variant", "target"],
      rows: links.map((one) => [one.link, toLabel(one), one.variant ?? "-", one.target]),
    };
  },
  text({ count: all, next, as_of }) {
    const more = next === null ? "" : `; --after ${next} lists more`;
    return `(${countInWords(all, "link")}${more}; ${describeMomentJson(as_of)})\n`;
  },
  examples: ["--limit 50"],
});
