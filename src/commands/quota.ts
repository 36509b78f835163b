import { usedOn } from "../../projections/quota.ts";
import { isoTime, systemClock } from "../clock.ts";
import { dayIn, nextDayAt } from "../outreach/day.ts";
import { configOf, EXIT, parse, type Command } from "./command.ts";
import { openExistingLog } from "./log-session.ts";
import { AS_OF_HELP, asOf, asOfJson, foldAsOf, parseMoment, type Moment, type Place } from "./moment.ts";

export const quota: Command = {
  summary: "show how much of the day's quota is used, also of an earlier day",
  help: `reachlog quota [--as-of TIME|POSITION] [--json]

Messages that count against the day's limit. The day is that of the moment in
QUOTA_TIMEZONE. The limit is the one configured now (DAILY_LIMIT): the log does
not hold earlier ones.

${AS_OF_HELP}  --json      one JSON object
`,
  async run(args, terminal) {
    const { values } = parse(args, { "as-of": { type: "string" }, json: { type: "boolean", default: false } });
    const config = configOf(terminal);
    const { timezone, dailyLimit: limit } = config.outreach;
    const moment = parseMoment(values["as-of"], timezone);
    await using store = await openExistingLog(config);
    const folded = await foldAsOf(terminal, store, ["quota"], moment);
    const ms = timeOf(moment, folded, systemClock());
    const day = ms === undefined ? null : dayIn(timezone, ms);
    const used = day === null ? 0 : usedOn(folded.states.quota, day);
    const left = Math.max(0, limit - used);
    const resetsAt = ms === undefined ? null : isoTime(nextDayAt(timezone, ms));
    if (values.json) {
      const quota = { day, timezone, used, limit, left, resets_at: resetsAt, as_of: asOfJson(folded) };
      terminal.out(`${JSON.stringify(quota)}\n`);
      return EXIT.ok;
    }
    const name = day === null ? "before the first day" : `${day} (${timezone})`;
    const end = resetsAt === null ? "" : `, ends at ${resetsAt}`;
    terminal.out(`${name}: ${used} of ${limit} used, ${left} left${end} (${asOf(folded)})\n`);
    if (values["as-of"] !== undefined) terminal.out("the limit is the one configured now\n");
    return EXIT.ok;
  },
};

/** The moment in ms; undefined before the first event. As the service does, never before the newest event. */
function timeOf({ to, until }: Moment, { time }: Place, now: number): number | undefined {
  const newest = time === undefined ? undefined : Date.parse(time);
  if (to !== undefined) return newest;
  return Math.min(until?.getTime() ?? Infinity, Math.max(now, newest ?? 0));
}
