import { labelOf, periodsOf, type PeriodsQuery } from "../../projections/periods.ts";
import type { States } from "../../projections/all.ts";
import { noClicks } from "../../projections/suspected.ts";
import { noMessages } from "../../projections/timeline.ts";
import {
  clicksByPeople,
  clicksOfVariant,
  type VariantClicks,
  type VariantResults,
} from "../../projections/variants.ts";
import { isoTime } from "../platform/clock.ts";
import { wilsonInterval } from "../platform/wilson-interval.ts";
import { answer, Command, JSON_OPTION, Option, type MakeCommand } from "./shared/command.ts";
import type { Moment, Place } from "../projector/moment.ts";
import { AS_OF_OPTION, describeMoment, openAsOf, toAsOfJson } from "./shared/moment.ts";
import { table } from "./shared/table.ts";

export const stats: MakeCommand = (terminal, exit) =>
  new Command("stats")
    .summary("show the all-time counts, also by day, hour or variant")
    .description(
      `Messages sent, skipped and failed, counted from the log.

By variant: the results of each variant of each template. replied and opted out
count people, as far as the messages to us were read, which every run begins
with. A template is named by its id, which reachlog outreach preview shows for
the one configured now.

By day or hour: messages, and clicks of people (suspected ones among them) and of
bots, in each of the last ${SHOWN.day} days or ${SHOWN.hour} hours of QUOTA_TIMEZONE.`,
    )
    .addOption(new Option("--by <what>", "what to tell apart").choices(["day", "hour", "variant"] as const))
    .option(...AS_OF_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", "\nExample:\n  reachlog stats --by variant --as-of 2026-11-21")
    .action(
      exit(async ({ by, asOf: at, json }) => {
        await using asked = await openAsOf(terminal, at);
        const { timezone } = asked.outreach;
        if (by === "variant") {
          const folded = await asked.fold("variants", "referrers", "clicks", "suspected");
          const { variants, referrers, clicks, suspected } = folded.states;
          const clicksOf = clicksByPeople(clicks, suspected);
          const groups = variants.groups.map((group) => ({
            ...group,
            clicked: clicksOfVariant(referrers, group, clicksOf),
          }));
          return answer(terminal, json, variantsAsJson(groups, folded), variantsAsText(groups, folded));
        }
        if (by !== undefined) {
          const folded = await asked.fold("timeline", "suspected");
          const until = resolveEnd(asked.moment, folded, asked.store.logClock.now());
          const periods = countPeriods(folded.states, { unit: by, count: SHOWN[by], until, timezone });
          const shown = periods.map(({ start, ...counts }) => ({ start: isoTime(start), ...counts }));
          const text = periodsAsText(periods, by, timezone, folded);
          return answer(terminal, json, { periods: shown, as_of: toAsOfJson(folded) }, text);
        }
        const folded = await asked.fold("stats");
        const { sent, skipped, failed } = folded.states.stats;
        const text = `sent ${sent}, skipped ${skipped}, failed ${failed} (${describeMoment(folded)})\n`;
        return answer(terminal, json, { sent, skipped, failed, as_of: toAsOfJson(folded) }, text);
      }),
    );

/** Periods that are shown. */
const SHOWN = { day: 30, hour: 48 } as const;

const PERIOD_HEAD = ["sent", "skipped", "failed", "clicks", "suspected", "bots"] as const;

type PeriodCounts = Readonly<Record<(typeof PERIOD_HEAD)[number], number>>;

/** What happened in a day or hour that begins at `start`, ms since 1970. */
interface CountedPeriod extends PeriodCounts {
  readonly start: number;
}

/** The moment in ms since 1970: the time asked for, that of the position asked for, or now. */
function resolveEnd({ to, until }: Moment, { time }: Place, now: number): number {
  if (to !== undefined && time !== undefined) return Date.parse(time);
  return Math.min(now, until?.getTime() ?? now);
}

function countPeriods(
  { timeline, suspected }: Pick<States, "timeline" | "suspected">,
  query: PeriodsQuery,
): readonly CountedPeriod[] {
  const messages = periodsOf(timeline.quarters, query, noMessages);
  const clicks = periodsOf(suspected.quarters, query, noClicks);
  return messages.map(({ start, counts }, at) => {
    const { clicks: people = 0, suspected: some = 0, bots = 0 } = clicks[at]?.counts ?? {};
    return { start, ...counts, clicks: people, suspected: some, bots };
  });
}

function periodsAsText(
  periods: readonly CountedPeriod[],
  unit: "day" | "hour",
  timezone: string,
  place: Place,
): string {
  const rows = periods.map(({ start, ...counts }) => {
    return [labelOf(start, { unit, timezone }), ...PERIOD_HEAD.map((kind) => counts[kind])];
  });
  return `${table([unit, ...PERIOD_HEAD], rows)}(${timezone}, ${describeMoment(place)})\n`;
}

const HEAD = [
  "template",
  "variant",
  "attempted",
  "sent",
  "failed",
  "in doubt",
  "replied",
  "opted out",
  "clicks",
  "reply rate",
  "95 % interval",
] as const;

/** A variant with the clicks on its own links; undefined: it has none. */
type ClickedVariant = VariantResults & { readonly clicked: VariantClicks | undefined };

/** Results as a table, the variants in the order in which they were first used. */
function variantsAsText(groups: readonly ClickedVariant[], place: Place): string {
  if (groups.length === 0) return `no message was attempted yet (${describeMoment(place)})\n`;
  return `${table(HEAD, groups.map(row))}(${describeMoment(place)})\n`;
}

/** Results as one JSON object; `template` is null for messages of before templates were recorded. */
function variantsAsJson(groups: readonly ClickedVariant[], place: Place): object {
  const variants = groups.map(({ clicked, ...results }) => ({
    ...results,
    clicks: clicked?.clicks ?? null,
    people_clicked: clicked?.people ?? null,
    template: results.template === "" ? null : results.template,
    reply_rate: computeReplyRate(results) ?? null,
    reply_rate_interval: wilsonInterval(results.replied, results.sent) ?? null,
  }));
  return { variants, as_of: toAsOfJson(place) };
}

function row(results: ClickedVariant): (string | number)[] {
  const { template, variant, attempted, sent, failed, in_doubt, replied, opted_out } = results;
  const rate = computeReplyRate(results);
  const interval = wilsonInterval(replied, sent);
  return [
    template === "" ? "unknown" : template,
    variant,
    attempted,
    sent,
    failed,
    in_doubt,
    replied,
    opted_out,
    results.clicked?.clicks ?? "-",
    rate === undefined ? "-" : percent(rate),
    interval === undefined ? "-" : `${percent(interval.low)} to ${percent(interval.high)}`,
  ];
}

/** 0 to 1; undefined while nothing was sent. */
function computeReplyRate({ replied, sent }: VariantResults): number | undefined {
  return sent === 0 ? undefined : replied / sent;
}

function percent(rate: number): string {
  return `${(rate * 100).toFixed(1)} %`;
}
