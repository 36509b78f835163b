import { Type } from "@sinclair/typebox";
import { DEFAULT_CAMPAIGN } from "../../events/campaign.ts";
import { isAfterChange, newestMs, usedAt, type Quota } from "../../projections/quota.ts";
import { RUNS_MAX } from "../../projections/runs.ts";
import { formatRecipient } from "../history/sentences/sentence-parts.ts";
import { findRunCallers, readRunCounts } from "../history/run-list-and-page.ts";
import { isoTime } from "../platform/clock-ids-and-timers.ts";
import { count, id, oneOf, orNull, TEXT, text, time } from "../platform/common-schemas.ts";
import { countInWords } from "../platform/format-numbers-and-lists.ts";
import { operation, pageInput, refusal, refuse } from "../platform/operation.ts";
import {
  asOf,
  asOfInput,
  describeMomentJson,
  toMomentJson,
  type LogReader,
  type AnswerMoment,
} from "../projector/operation-states-as-of.ts";
import { recipientAmong, recipientName } from "../recipients/resolve-recipient.ts";
import { usageError } from "../platform/service-error.ts";
import { momentIn, resetsAt } from "./quota-day.ts";
import { requestStop } from "./run-end-and-stop-request.ts";
import { settleMessagesInDoubt } from "./operator-settles-messages-in-doubt.ts";
import type { StateContext } from "../log/event-log.ts";

interface OutreachReader extends LogReader {
  readonly config: { readonly outreach: { readonly dailyLimit: number; readonly timezone: string } };
}

export const showQuota = operation({
  name: "quota",
  id: "getQuota",
  tag: "outreach",
  access: ["session", "read"],
  summary: "Show how much of the day's quota is used.",
  description:
    "Messages that count against the day's limit. The day is that of the moment in QUOTA_TIMEZONE; for a moment in the past, in the time zone that applied then. After a change of QUOTA_TIMEZONE the last 24 hours count instead, until 24 hours after the first message in the new zone. The limit is the one configured now (DAILY_LIMIT): the log does not hold earlier ones.",
  personalRead: false,
  input: asOfInput,
  output: {
    day: orNull(text("2026-11-21")),
    timezone: text("Europe/Berlin"),
    counted: oneOf("day", "last_24_hours"),
    used: count,
    limit: count,
    remaining: count,
    resets_at: orNull(time),
    ...asOf,
  },
  async run({ config, clock, at }: OutreachReader, { as_of }) {
    const { timezone, dailyLimit: limit } = config.outreach;
    const found = await at(as_of, "quota");
    const { quota } = found.states;
    const now = clock();
    const ms = resolveTime(found, quota, now);
    const isPast = found.moment.to !== undefined || (ms !== undefined && ms < now);
    const zone = isPast ? (quota.timezone ?? timezone) : timezone;
    const moment = ms === undefined ? undefined : momentIn(zone, ms);
    const used = moment === undefined ? 0 : usedAt(quota, moment);
    return {
      day: moment?.day ?? null,
      timezone: zone,
      counted: moment !== undefined && isAfterChange(quota, moment) ? ("last_24_hours" as const) : ("day" as const),
      used,
      limit,
      remaining: Math.max(0, limit - used),
      resets_at: moment === undefined ? null : isoTime(resetsAt(quota, limit, moment)),
      as_of: toMomentJson(found),
    };
  },
  text({ day, timezone, counted, used, limit, remaining, resets_at, as_of }, input) {
    const named = day === null ? "before the first day" : `${day} (${timezone})`;
    const isDay = counted === "day";
    const name = isDay ? named : `the 24 hours before, because the time zone was changed to ${timezone}`;
    const end = resets_at === null ? "" : isDay ? `, ends at ${resets_at}` : `, more at ${resets_at}`;
    const note = input.as_of === undefined ? "" : "the limit is the one configured now\n";
    return `${name}: ${used} of ${limit} used, ${remaining} left${end} (${describeMomentJson(as_of)})\n${note}`;
  },
  examples: ["--as-of 2026-11-21"],
});

/**
 * Returns the time for which an answer states the quota, in ms since 1970. For the present, that is at least the time
 * of the newest event. Undefined if the requested position is before the first event.
 */
function resolveTime({ moment: { to, until }, time: at }: AnswerMoment, quota: Quota, now: number): number | undefined {
  const newest = at === undefined ? undefined : newestMs(quota, at);
  if (to !== undefined) return newest;
  return Math.min(until?.getTime() ?? Infinity, Math.max(now, newest ?? 0));
}

export const stopRun = operation({
  name: "outreach stop",
  id: "stopRun",
  tag: "outreach",
  access: ["token", "run"],
  summary: "Stop the run in progress.",
  description:
    "The run sends nothing more, settles what is in flight and ends as `stopped`, on any instance; if it waits, it ends at once. A message that was already checked for the last time may still go out. Dry runs can be stopped too. A repeat changes nothing.",
  personalRead: false,
  input: {
    run_id: Type.Optional(
      Type.String({
        title: "id",
        pattern: "^[A-Za-z0-9-]{1,100}$",
        description: "Default: the run in progress.",
        examples: ["01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11"],
      }),
    ),
  },
  output: { run_id: id, status: Type.Literal("stopping") },
  refusals: { no_run_in_progress: refusal("conflict", "No run is in progress, or not the one named.") },
  async run(context: StateContext, { run_id: wanted }, caller) {
    const asked = await requestStop(context, wanted, caller);
    return asked.kind === "stopping" ? { run_id: asked.run_id, status: asked.kind } : "no_run_in_progress";
  },
  text: () => "The run is stopping: it sends nothing more.",
  examples: [""],
});

/** Maximum length of an operator's reason, in characters: a sentence or two for later readers of the log. */
const REASON_CHARACTERS_MAX = 500;

export const settleMessages = operation({
  name: "outreach settle",
  id: "settleMessages",
  tag: "outreach",
  access: ["token", "recipients"],
  summary: "Close messages in doubt, as arrived or as left.",
  description:
    "For an operator who knows more than X shows. Nothing is sent, and the log keeps the reason. A message that arrived counts as sent. One that is left stays unknown: no run looks it up, and its recipient gets no second message.",
  personalRead: false,
  input: {
    recipients: Type.Optional(
      Type.Array(recipientName, { minItems: 1, maxItems: 100, description: "The recipients of the messages" }),
    ),
    all: Type.Optional(Type.Literal(true, { description: "All messages in doubt" })),
    expected: Type.Optional(
      Type.Integer({
        title: "number",
        minimum: 0,
        description: "The number that was counted before; if it has changed, nothing is done",
      }),
    ),
    as: Type.Union([Type.Literal("arrived"), Type.Literal("left")], {
      title: "answer",
      description: "`arrived`: it counts as sent. `left`: it stays unknown, and is not looked up again",
    }),
    why: Type.String({
      title: "text",
      minLength: 1,
      maxLength: REASON_CHARACTERS_MAX,
      pattern: TEXT,
      description: `Why, in 1 to ${REASON_CHARACTERS_MAX} characters`,
      examples: ["she thanked us"],
    }),
  },
  positional: ["recipients"],
  output: { done: count },
  refusals: {
    no_message_in_doubt: refusal("conflict", "No message to {recipient} is in doubt."),
    number_changed: refusal(
      "conflict",
      "Nothing was done: {number} messages are in doubt now, not {expected}. List them again.",
      "number",
    ),
  },
  async run(context: StateContext, { recipients, all, expected, as, why }, caller) {
    if ((all === true) === (recipients !== undefined)) throw usageError("give either recipients or all");
    const contacts = context.projector.state("contacts");
    const named = recipients?.map((name) => recipientAmong(contacts, name));
    const settled = await settleMessagesInDoubt(context, { recipients: named, expected, as, why: why.trim() }, caller);
    if ("done" in settled) return settled;
    if ("missing" in settled) return refuse("no_message_in_doubt", { recipient: formatRecipient(settled.missing) });
    return refuse("number_changed", { number: settled.number, expected: expected ?? 0 }, { number: settled.number });
  },
  text: ({ done }, { as }) =>
    as === "arrived"
      ? `${countInWords(done, "message counts", "messages count")} as sent.`
      : `${countInWords(done, "message stays", "messages stay")} unknown, and ${done === 1 ? "is" : "are"} not looked up again.`,
  examples: ['@sara_sells --as arrived --why "she thanked us"'],
});

/** Default number of runs in one response. */
const RUNS_SHOWN = 50;
const RUNS_SHOWN_MAX = 500;

export const listRuns = operation({
  name: "runs",
  id: "listRuns",
  tag: "outreach",
  access: ["session", "read"],
  summary: "List all runs, the newest first.",
  description: `Dry runs are listed too, without a number: their figures are what they would have sent and skipped. People contacted earlier are in \`contacted\`, not in \`skipped\`. The newest ${RUNS_MAX} runs are kept in the list; the log has all of them.`,
  personalRead: false,
  input: {
    ...pageInput(RUNS_SHOWN, RUNS_SHOWN_MAX),
    ...asOfInput,
  },
  output: {
    runs: Type.Array(
      Type.Object({
        number: Type.Union([count, Type.Null()], { description: "Null for a dry run." }),
        run_id: id,
        started_at: time,
        caller: orNull(text("cron")),
        dry_run: Type.Boolean(),
        campaign: text("spring"),
        template: orNull(text("spring")),
        end: Type.Union([text("completed"), Type.Null()], { description: "Null while the run is in progress." }),
        sent: count,
        skipped: count,
        contacted: count,
        failed: count,
        in_doubt: count,
      }),
    ),
    count,
    dry_runs: count,
    next: orNull(count),
    ...asOf,
  },
  list: "runs",
  async run({ store, at }: LogReader, { limit = RUNS_SHOWN, after = Infinity, as_of }) {
    const found = await at(as_of, "runs", "run");
    const { runs, run } = found.states;
    const older = [...runs.started].toReversed().filter(([, { position }]) => position < after);
    const page = older.slice(0, limit);
    const callers = await findRunCallers(
      store,
      page.map(([, { position }]) => position),
    );
    return {
      runs: page.map(([run_id, summary]) => ({
        number: summary.number,
        run_id,
        started_at: summary.started_at,
        caller: callers.get(run_id) ?? null,
        dry_run: summary.dry_run,
        campaign: summary.campaign ?? DEFAULT_CAMPAIGN,
        template: summary.template,
        end: summary.end?.reason ?? null,
        ...readRunCounts(run, run_id, summary),
      })),
      count: runs.count,
      dry_runs: runs.dry,
      next: older.length > limit ? page.at(-1)![1].position : null,
      as_of: toMomentJson(found),
    };
  },
  table: ({ runs }) => ({
    head: ["run", "began", "by", "message", "sent", "skipped", "contacted", "failed", "in doubt", "end", "id"],
    rows: runs.map(
      ({ number, started_at, caller, template, sent, skipped, contacted, failed, in_doubt, end, run_id }) => [
        number ?? "dry run",
        started_at,
        caller ?? "",
        template ?? "",
        sent,
        skipped,
        contacted,
        failed,
        in_doubt,
        end ?? "in progress",
        run_id,
      ],
    ),
  }),
  text({ count: all, dry_runs: dry, next, as_of }) {
    const more = next === null ? "" : `; --after ${next} lists earlier ones`;
    return `(${countInWords(all, "run")}, ${countInWords(dry, "dry run")}${more}; ${describeMomentJson(as_of)})\n`;
  },
  examples: ["--limit 10", "--as-of 2026-11-21"],
});
