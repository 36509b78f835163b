import type { VariantResults } from "../../projections/variants.ts";
import { Command, Option, configOf, EXIT, JSON_OPTION, type MakeCommand } from "./command.ts";
import { openExistingLog } from "./log-session.ts";
import { AS_OF_OPTION, asOf, asOfJson, foldAsOf, parseMoment, type Place } from "./moment.ts";
import { table } from "./table.ts";

export const stats: MakeCommand = (terminal, exit) =>
  new Command("stats")
    .summary("show the all-time counts, also by variant")
    .description(
      `Messages sent, skipped and failed, counted from the log.

By variant: what came of each variant of each template. replied and opted out
count people, as far as the messages to us were read, which every run begins
with. A template is named by its id, which reachlog outreach preview shows for
the one configured now.`,
    )
    .addOption(new Option("--by <what>", "what to tell apart").choices(["variant"] as const))
    .option(...AS_OF_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", "\nExample:\n  reachlog stats --by variant --as-of 2026-11-21")
    .action(
      exit(async ({ by, asOf: at, json }) => {
        const config = configOf(terminal);
        const moment = parseMoment(at, config.outreach.timezone);
        await using store = await openExistingLog(config);
        if (by === "variant") {
          const folded = await foldAsOf(terminal, store, ["variants"], moment);
          const { groups } = folded.states.variants;
          terminal.out(json === true ? variantsAsJson(groups, folded) : variantsAsText(groups, folded));
          return EXIT.ok;
        }
        const folded = await foldAsOf(terminal, store, ["stats"], moment);
        const { sent, skipped, failed } = folded.states.stats;
        terminal.out(
          json === true
            ? `${JSON.stringify({ sent, skipped, failed, as_of: asOfJson(folded) })}\n`
            : `sent ${sent}, skipped ${skipped}, failed ${failed} (${asOf(folded)})\n`,
        );
        return EXIT.ok;
      }),
    );

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
function variantsAsText(groups: readonly VariantResults[], place: Place): string {
  if (groups.length === 0) return `no message was attempted yet (${asOf(place)})\n`;
  return `${table(HEAD, groups.map(row))}(${asOf(place)})\n`;
}

/** Results as one JSON object; `template` is null for messages of before templates were recorded. */
function variantsAsJson(groups: readonly VariantResults[], place: Place): string {
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
