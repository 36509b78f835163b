import { labelOf, periodsOf, type PeriodsQuery } from "../../projections/periods.ts";
import type { States } from "../../projections/all.ts";
import { noClicks } from "../../projections/suspected.ts";
import { noMessages } from "../../projections/timeline.ts";
import { isoTime } from "../platform/clock.ts";
import { Command, JSON_OPTION, Option, type MakeCommand } from "./shared/command.ts";
import { answer, table } from "./shared/terminal.ts";
import type { Place } from "../projector/parse-moment.ts";
import { AS_OF_OPTION, describeMoment, openAtMoment, resolveEnd, toAsOfJson } from "./shared/moment.ts";

export const stats: MakeCommand = (terminal) =>
  new Command("stats")
    .summary("show the all-time counts, also by day or hour")
    .description(
      `Messages sent, skipped and failed, counted from the log.

By day or hour: messages, and clicks of people (suspected ones among them) and of
bots, in each of the last ${SHOWN.day} days or ${SHOWN.hour} hours of QUOTA_TIMEZONE. For outcomes by
variant, run or link, see reachlog results.`,
    )
    .addOption(new Option("--by <what>", "what to group by").choices(["day", "hour"] as const))
    .option(...AS_OF_OPTION)
    .option(...JSON_OPTION)
    .examples("reachlog stats --by day --as-of 2026-11-21")
    .action(async ({ by, asOf: at, json }) => {
      await using asked = await openAtMoment(terminal, at);
      const { timezone } = asked.outreach;
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
    });

const SHOWN = { day: 30, hour: 48 } as const;

const PERIOD_HEAD = ["sent", "skipped", "failed", "clicks", "suspected", "bots"] as const;

/** What happened in days or hours, each of which begins at `start`, ms since 1970. */
function countPeriods({ timeline, suspected }: Pick<States, "timeline" | "suspected">, query: PeriodsQuery) {
  const messages = periodsOf(timeline.quarters, query, noMessages);
  const clicks = periodsOf(suspected.quarters, query, noClicks);
  return messages.map(({ start, counts }, at) => {
    const { clicks: people = 0, suspected: some = 0, bots = 0 } = clicks[at]?.counts ?? {};
    return { start, ...counts, clicks: people, suspected: some, bots };
  });
}

function periodsAsText(periods: ReturnType<typeof countPeriods>, unit: "day" | "hour", timezone: string, place: Place) {
  const rows = periods.map(({ start, ...counts }) => {
    return [labelOf(start, { unit, timezone }), ...PERIOD_HEAD.map((kind) => counts[kind])];
  });
  return `${table([unit, ...PERIOD_HEAD], rows)}(${timezone}, ${describeMoment(place)})\n`;
}
