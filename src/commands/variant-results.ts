import type { VariantResults } from "../../projections/variants.ts";
import { asOf, asOfJson, type Place } from "./moment.ts";
import { table } from "./table.ts";

const HEAD = [
  "template",
  "variant",
  "attempted",
  "sent",
  "failed",
  "in doubt",
  "replied",
  "opted out",
  "reply rate",
] as const;

/** Results as a table, the variants in the order in which they were first used. */
export function variantsAsText(groups: readonly VariantResults[], place: Place): string {
  if (groups.length === 0) return `no message was attempted yet (${asOf(place)})\n`;
  return `${table(HEAD, groups.map(row))}(${asOf(place)})\n`;
}

/** Results as one JSON object; `template` is null for messages of before templates were told. */
export function variantsAsJson(groups: readonly VariantResults[], place: Place): string {
  const variants = groups.map((results) => ({
    ...results,
    template: results.template === "" ? null : results.template,
    reply_rate: rateOf(results) ?? null,
  }));
  return `${JSON.stringify({ variants, as_of: asOfJson(place) })}\n`;
}

function row(results: VariantResults): (string | number)[] {
  const { template, variant, attempted, sent, failed, in_doubt, replied, opted_out } = results;
  const rate = rateOf(results);
  const shown = rate === undefined ? "-" : `${(rate * 100).toFixed(1)} %`;
  return [
    template === "" ? "unknown" : template,
    variant,
    attempted,
    sent,
    failed,
    in_doubt,
    replied,
    opted_out,
    shown,
  ];
}

/** 0 to 1; undefined while nothing was sent. */
function rateOf({ replied, sent }: VariantResults): number | undefined {
  return sent === 0 ? undefined : replied / sent;
}
