import { isAfterChange, usedAt } from "../../projections/quota.ts";
import { isoTime } from "../platform/clock.ts";
import { momentIn, resetsAt } from "../outreach/quota-day.ts";
import { Command, readConfig, EXIT, JSON_OPTION, type MakeCommand, type Terminal } from "./shared/command.ts";
import { openExistingLog } from "./shared/log-session.ts";
import { parseMoment, type Moment, type Place } from "../projector/moment.ts";
import { AS_OF_OPTION, describeMoment, toAsOfJson, foldToMoment } from "./shared/moment.ts";

export const quota: MakeCommand = (terminal, exit) =>
  new Command("quota")
    .summary("show how much of the day's quota is used")
    .description(
      `Messages that count against the day's limit. The day is that of the moment in
QUOTA_TIMEZONE; of a moment in the past, in the time zone that counted then.
After a change of QUOTA_TIMEZONE the last 24 hours count instead, until 24 hours
after the first message in the new zone. The limit is the one configured now
(DAILY_LIMIT): the log does not hold earlier ones.`,
    )
    .option(...AS_OF_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", "\nExample:\n  reachlog quota --as-of 2026-11-21")
    .action(exit(({ asOf: asked, json }) => showQuota(terminal, asked, json === true)));

async function showQuota(terminal: Terminal, asked: string | undefined, json: boolean): Promise<number> {
  const config = readConfig(terminal);
  const { timezone, dailyLimit: limit } = config.outreach;
  const moment = parseMoment(asked, timezone);
  await using store = await openExistingLog(config);
  const folded = await foldToMoment(terminal, store, ["quota"], moment);
  const state = folded.states.quota;
  const now = store.logClock.now();
  const ms = resolveTime(moment, folded, now);
  const zone = ms !== undefined && ms < now ? (state.timezone ?? timezone) : timezone;
  const at = ms === undefined ? undefined : momentIn(zone, ms);
  const used = at === undefined ? 0 : usedAt(state, at);
  const left = Math.max(0, limit - used);
  const counted = at !== undefined && isAfterChange(state, at) ? "last_24_hours" : "day";
  const resets_at = at === undefined ? null : isoTime(resetsAt(state, limit, at));
  if (json) {
    const shown = { day: at?.day ?? null, timezone: zone, counted, used, limit, left, resets_at };
    terminal.out(`${JSON.stringify({ ...shown, as_of: toAsOfJson(folded) })}\n`);
    return EXIT.ok;
  }
  const day = at === undefined ? "before the first day" : `${at.day} (${zone})`;
  const name = counted === "day" ? day : `the 24 hours before, since the time zone was changed to ${zone}`;
  const end = resets_at === null ? "" : counted === "day" ? `, ends at ${resets_at}` : `, more at ${resets_at}`;
  terminal.out(`${name}: ${used} of ${limit} used, ${left} left${end} (${describeMoment(folded)})\n`);
  if (asked !== undefined) terminal.out("the limit is the one configured now\n");
  return EXIT.ok;
}

/** The moment in ms; undefined before the first event. As the service does, never before the newest event. */
function resolveTime({ to, until }: Moment, { time }: Place, now: number): number | undefined {
  const newest = time === undefined ? undefined : Date.parse(time);
  if (to !== undefined) return newest;
  return Math.min(until?.getTime() ?? Infinity, Math.max(now, newest ?? 0));
}
