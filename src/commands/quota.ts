import { isAfterChange, newestMs, type Quota, usedAt } from "../../projections/quota.ts";
import { handle } from "../log/decide-and-append.ts";
import { STREAMS, type NewEvent } from "../log/event-log.ts";
import { isSkewed, skewInWords } from "../log/log-clock.ts";
import { isoTime } from "../platform/clock.ts";
import { dayIn, momentIn, resetsAt } from "../outreach/quota-day.ts";
import { Command, JSON_OPTION, type MakeCommand } from "./shared/command.ts";
import { COMMAND_METADATA, openSession } from "./shared/log-session.ts";
import { answer, fail } from "./shared/terminal.ts";
import type { Moment, Place } from "../projector/parse-moment.ts";
import { AS_OF_OPTION, describeMoment, openAtMoment, toAsOfJson } from "./shared/moment.ts";

export const quota: MakeCommand = (terminal) =>
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
    .examples("reachlog quota --as-of 2026-11-21")
    .action(async ({ asOf, json }) => {
      await using asked = await openAtMoment(terminal, asOf);
      const { timezone, dailyLimit: limit } = asked.outreach;
      const folded = await asked.fold("quota");
      const state = folded.states.quota;
      const now = asked.store.logClock.now();
      const ms = resolveTime(asked.moment, folded, state, now);
      const zone = ms !== undefined && ms < now ? (state.timezone ?? timezone) : timezone;
      const at = ms === undefined ? undefined : momentIn(zone, ms);
      const used = at === undefined ? 0 : usedAt(state, at);
      const left = Math.max(0, limit - used);
      const counted = at !== undefined && isAfterChange(state, at) ? "last_24_hours" : "day";
      const resets_at = at === undefined ? null : isoTime(resetsAt(state, limit, at));
      const shown = { day: at?.day ?? null, timezone: zone, counted, used, limit, left, resets_at };
      const day = at === undefined ? "before the first day" : `${at.day} (${zone})`;
      const name = counted === "day" ? day : `the 24 hours before, since the time zone was changed to ${zone}`;
      const end = resets_at === null ? "" : counted === "day" ? `, ends at ${resets_at}` : `, more at ${resets_at}`;
      const text = `${name}: ${used} of ${limit} used, ${left} left${end} (${describeMoment(folded)})\n`;
      const note = asOf === undefined ? "" : "the limit is the one configured now\n";
      answer(terminal, json, { ...shown, as_of: toAsOfJson(folded) }, text + note);
    });

export const clockCorrected: MakeCommand = (terminal) =>
  new Command("clock-corrected")
    .summary("declare that the clock is right, not the log's times")
    .description(
      `Declares that this machine's clock is right now, where a clock that was ahead made
the log record later times. Recorded times stay, and new events get the newest of
them until it comes. From now on the day's quota and the sending window go by the
clock: what was sent under later days counts for today.

On PostgreSQL the clock is the server's.`,
    )
    .option(...JSON_OPTION)
    .examples("reachlog clock-corrected")
    .addHelpText("after", "\nExit code 1 when the newest event is not ahead of the clock.")
    .action(async ({ json }) => {
      await using session = await openSession(terminal);
      const { config, logClock, projector } = session;
      const now = logClock.now();
      const aheadMs = newestMs(projector.state("quota"), projector.time) - now;
      if (!isSkewed(aheadMs) || aheadMs < 0) {
        return fail(
          terminal,
          "the log's newest event is not ahead of this machine's clock: nothing is to be corrected",
        );
      }
      const { timezone } = config.outreach;
      const data = { at: isoTime(now), day: dayIn(timezone, now), timezone };
      const corrected: NewEvent = { type: "LogTimeCorrected", data };
      await handle(session, STREAMS.log, () => ({ events: [corrected] }), { metadata: COMMAND_METADATA });
      const text = `${skewInWords(-aheadMs)} time, and counts from now on: today is ${data.day}\n`;
      return answer(terminal, json, { at: data.at, day: data.day }, text);
    });

/** Ms since 1970, never before the newest event, as in the service; undefined before the first event. */
function resolveTime({ to, until }: Moment, { time }: Place, state: Quota, now: number): number | undefined {
  const newest = time === undefined ? undefined : newestMs(state, time);
  if (to !== undefined) return newest;
  return Math.min(until?.getTime() ?? Infinity, Math.max(now, newest ?? 0));
}
