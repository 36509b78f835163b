import type { DataOf, LogStore, Recorded } from "../../events/event-types-and-codec.ts";
import type { FailureReason, PauseReason, Recipient, Usage } from "../../events/outreach.ts";
import type { States } from "../../projections/all.ts";
import { findContact } from "../../projections/contact-identity.ts";
import type { Contact } from "../../projections/contact-state.ts";
import { isSameRecipient } from "../../projections/current-run.ts";
import { findTracked } from "../../projections/message-outcomes-and-reactions.ts";
import { countContacted, findNumberedRun, RUNS_MAX, type Runs, type RunSummary } from "../../projections/runs.ts";
import { eventAt, eventsAt } from "../log/event-log.ts";
import { X_PRICES } from "../networks/x/x-api.ts";
import { countInWords, formatDuration, grouped } from "../platform/format-numbers-and-lists.ts";
import { createSortedPage, toSortValue, type ListPage } from "../platform/sorted-page.ts";
import type { PageMoment } from "../projector/moment-of-console-page.ts";
import { NOT_REACHED_WORDS, SKIPS } from "./sentences/outreach.ts";
import { EVENT_ID, toReading } from "./find-event.ts";
import { eventsOfRun, findRunStart } from "./find-run-events.ts";

/** Returns the caller who started each run, by the run's id. `positions`: those of the events that started the runs. */
export async function findRunCallers(
  store: LogStore,
  positions: readonly number[],
): Promise<ReadonlyMap<string, string | undefined>> {
  const callers = new Map<string, string | undefined>();
  for await (const { data, meta } of eventsAt(
    store,
    positions.toSorted((one, other) => one - other),
  )) {
    if ("run_id" in data && data.run_id !== undefined) callers.set(data.run_id, meta.caller);
  }
  return callers;
}

/**
 * Returns the figures of a run; while it is in progress, its figures so far. `contacted`: people contacted earlier, who
 * do not count as skipped.
 */
export function readRunCounts({ current }: States["run"], runId: string, run: RunSummary) {
  const contacted = countContacted(run);
  const none = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };
  const own = current?.run_id === runId ? { ...current, skipped: current.skipped - contacted } : none;
  const { sent, skipped, failed, in_doubt } = run.end ?? own;
  return { sent, skipped, contacted, failed, in_doubt };
}

/** The columns that a list of runs is sorted by. */
export const RUN_COLUMNS = ["run", "message", "sent", "skipped", "failed"] as const;
type RunColumn = (typeof RUN_COLUMNS)[number];

/**
 * Lists runs, sorted. `count` and `dry`: numbers of all real and dry runs; `kept`: number of those that the projection
 * still knows.
 */
export async function readRunList(moment: PageMoment<"run" | "runs">, page: ListPage<RunColumn>) {
  const { started, count, dry } = moment.state("runs");
  const sorted = createSortedPage(page);
  for (const [runId, run] of started) sorted.add(toRunValue(moment, runId, run, page.sort.by), runId);
  const { keys, next } = sorted.end();
  const found = keys.flatMap((runId) => {
    const run = started.get(runId);
    return run === undefined ? [] : [{ runId, ...run, ...readRunCounts(moment.state("run"), runId, run) }];
  });
  const callers = await findRunCallers(
    moment.store,
    found.map(({ position }) => position),
  );
  const runs = found.map((run) => ({ ...run, caller: callers.get(run.runId) }));
  return { runs, next, count, dry, kept: Math.min(count + dry, RUNS_MAX) };
}

/** Returns the value by which a list of runs is sorted. */
function toRunValue(moment: PageMoment<"run">, runId: string, run: RunSummary, by: RunColumn): string {
  if (by === "run") return toSortValue(run.position);
  return by === "message" ? (run.template ?? "") : toSortValue(readRunCounts(moment.state("run"), runId, run)[by]);
}

/** Outcomes of recipients in a run, in the order of the page's tabs. */
export const OUTCOMES = ["sent", "skipped", "failed", "in_doubt"] as const;
export type Outcome = (typeof OUTCOMES)[number];
/**
 * Outcome of a recipient in a run. `contacted`: they got a message earlier. `not_reached`: a caller requested them, but
 * the run wrote no message to them.
 */
export type RowOutcome = Outcome | "contacted" | "not_reached";

/** A recipient's row on the page of a run: the outcome, and in words the reason for it or the recipient's reaction. */
export interface RunRow {
  readonly recipient: Recipient & { readonly name?: string | undefined };
  readonly position: number;
  readonly time: string;
  /** Undefined while the message is being sent, or while a requested recipient waits for their turn. */
  outcome: RowOutcome | undefined;
  readonly variant: string | undefined;
  why: string;
}

/** Span of time in which a run sent nothing, and why. */
interface RunWait {
  readonly from: number;
  readonly to: number;
  readonly reason: PauseReason;
}

/** Number of rows on one page of a run. */
const ROWS_SHOWN = 100;

/** Maximum number of events read for one page of a run, which takes some tens of milliseconds. */
const PAGE_EVENTS_MAX = 2_000;

type RunMoment = PageMoment<"contacts" | "results" | "run" | "runs">;

export type RunPage = NonNullable<Awaited<ReturnType<typeof readRunPage>>>;

/** Returns the id of the run that an address names by its number or its id. */
export function findRunId(moment: RunMoment, named: string): string {
  const numbered = /^\d{1,9}$/.test(named) ? findNumberedRun(moment.state("runs"), Number(named)) : undefined;
  return numbered ?? named.toLowerCase();
}

/**
 * Reads a run's recipients with one outcome, from position `from` on; on the first page also outcome times and waits
 * for the timeline. Covers at most {@link PAGE_EVENTS_MAX} events. Returns undefined if no such run exists.
 */
export async function readRunPage(
  moment: RunMoment,
  {
    runId,
    from,
    only,
  }: { readonly runId: string; readonly from: number | undefined; readonly only: RowOutcome | undefined },
) {
  if (!EVENT_ID.test(runId)) return undefined;
  const run = moment.state("runs").started.get(runId);
  const start = run?.position ?? (await findRunStart(toReading(moment), runId));
  if (start === undefined) return undefined;
  const begun = await eventAt(moment.store, start);
  if (begun.type !== "RunStarted") return undefined;
  const { events, next: unread } = await eventsOfRun(toReading(moment), runId, {
    from: from ?? start,
    limit: PAGE_EVENTS_MAX,
  });
  const all = toRows(moment, events, run?.end == null);
  const wanted = all.filter(({ outcome }) => only === undefined || outcome === only);
  const ended = run?.end?.position === undefined ? undefined : await eventAt(moment.store, run.end.position);
  const { dry_run: isDry, campaign, limit, recipients, rules } = begun.data;
  return {
    isDry,
    startedAt: begun.time,
    caller: begun.meta.caller,
    /** Campaign of the run; undefined if it is `default`. */
    campaign,
    limit,
    recipients,
    rules,
    end: run?.end ?? undefined,
    until: ended?.type === "RunFinished" ? ended.data.until : undefined,
    cost: ended?.type === "RunFinished" && ended.data.usage !== undefined ? toCost(ended.data.usage) : undefined,
    counts: run === undefined ? undefined : readRunCounts(moment.state("run"), runId, run),
    template: run?.template ?? undefined,
    rows: wanted.slice(0, ROWS_SHOWN),
    next: wanted[ROWS_SHOWN]?.position ?? unread,
    /**
     * Marks for the page's chart over time: the time and outcome of each recipient in the events that were read, except
     * recipients not reached. Empty on a later page.
     */
    marks: from === undefined ? toMarks(all) : [],
    waits: from === undefined ? toWaits(events, run?.end?.at ?? moment.time) : [],
    /** Number of sent messages by variant. Undefined if not all events of the run were read. */
    variants: from === undefined && unread === undefined ? countVariants(all) : undefined,
    before: run?.number == null ? undefined : findNumberedRun(moment.state("runs"), run.number - 1),
    after: run?.number == null ? undefined : findNumberedRun(moment.state("runs"), run.number + 1),
  };
}

function toMarks(rows: readonly RunRow[]) {
  return rows.flatMap(({ time, outcome }) => (outcome === "not_reached" ? [] : [{ at: Date.parse(time), outcome }]));
}

/**
 * Makes a row for each recipient with an outcome and, while the run is in progress, for each requested one that waits.
 */
function toRows(moment: RunMoment, events: readonly Recorded[], isInProgress: boolean): RunRow[] {
  const rows = new Map<string, RunRow>();
  const attempts = new Map<string, Attempt>();
  let requested: RunRow[] = [];
  for (const event of events) {
    const { position, time, data } = event;
    const row = { position, time, variant: undefined };
    if (event.type === "RecipientRequested") {
      const why = "requested, and not written to yet";
      requested.push({ ...row, recipient: named(moment, event.data.recipient), outcome: undefined, why });
      continue;
    }
    if ("recipient" in data && data.recipient !== undefined) {
      const { recipient } = data;
      requested = requested.filter((one) => !isSameRecipient(one.recipient, recipient));
    }
    if (event.type === "RecipientNotReached") {
      const { recipient, reason } = event.data;
      const why = NOT_REACHED_WORDS[reason] ?? `the run ended before: ${ENDS[reason as RunEndReason]}`;
      rows.set(`${position}`, { ...row, recipient: named(moment, recipient), outcome: "not_reached", why });
    } else if (event.type === "DirectMessageSkipped") {
      const { recipient, reason, detail } = event.data;
      const why = detail === undefined ? SKIPS[reason] : `${SKIPS[reason]}: ${detail}`;
      const outcome = reason === "already_contacted" ? "contacted" : "skipped";
      rows.set(`${position}`, { ...row, recipient: named(moment, recipient), outcome, why });
    } else if (event.type === "DirectMessageAttempted") {
      const { attempt_id, recipient, variant } = event.data;
      attempts.set(attempt_id, event.data);
      rows.set(attempt_id, {
        recipient: named(moment, recipient),
        position,
        time,
        outcome: undefined,
        variant,
        why: "",
      });
    } else if ("attempt_id" in event.data) {
      const { attempt_id: id } = event.data;
      const [row, attempt] = [rows.get(id), attempts.get(id)];
      if (row !== undefined && attempt !== undefined) settleRow(moment, row, attempt, event);
    }
  }
  return [...rows.values(), ...(isInProgress ? requested : [])].toSorted((one, other) => one.position - other.position);
}

function named(moment: RunMoment, recipient: Recipient): RunRow["recipient"] {
  return { ...recipient, name: findContact(moment.state("contacts"), recipient)?.name };
}

type Attempt = DataOf<"DirectMessageAttempted">;

function settleRow(moment: RunMoment, row: RunRow, attempt: Attempt, { type, data, time }: Recorded): void {
  const contact = findContact(moment.state("contacts"), row.recipient);
  const isNewest = contact?.attempted_at === row.time;
  if (type === "DirectMessageFailed") {
    row.outcome = "failed";
    row.why = FAILURES[data.reason] ?? data.reason.replaceAll("_", " ");
  } else if (type === "DirectMessageInDoubt") {
    row.outcome = "in_doubt";
    row.why = data.detail;
    // The doubt may have been settled by a lookup after the run's end.
    if (isNewest && contact.status === "sent") Object.assign(row, { outcome: "sent", why: "in doubt at first" });
    if (contact?.status === "failed") Object.assign(row, { outcome: "failed", why: FAILURES.not_delivered });
  } else if (type === "DirectMessageSent") {
    row.outcome = "sent";
    row.why = [...(isNewest ? listReactions(contact) : []), ...listClicks(moment, attempt)].join(", ");
    if (data.settled_by === "lookup") row.why ||= `found in the conversation at ${time.slice(11, 16)}`;
  }
}

/** Lists what a recipient did after the newest message to them. */
function listReactions({ suppressed, replied, seen_at = "", attempted_at = "" }: Contact): readonly string[] {
  const isSeen = seen_at !== "" && seen_at >= attempted_at;
  return [
    ...(suppressed ? ["opted out"] : []),
    ...(replied ? ["replied"] : []),
    ...(isSeen && !replied ? ["seen"] : []),
  ];
}

/** Lists what a recipient did with the links of their own in a message, which may be older than the newest one. */
function listClicks(moment: RunMoment, attempt: Attempt): readonly string[] {
  const { clicks = [], first = null, sent = 0 } = findTracked(moment.state("results"), attempt) ?? {};
  if (clicks.length === 0) return [];
  const after = first === null ? "" : `, ${formatDuration(Math.max(0, Math.round((first - sent) / 1000)))} after it`;
  return [`clicked${clicks.length === 1 ? "" : ` ${grouped(clicks.length)} times`}${after}`];
}

/** Words for reasons of a failed message whose name does not explain them. */
const FAILURES: Readonly<Partial<Record<FailureReason, string>>> & { readonly not_delivered: string } = {
  recipient_closed: "their account takes no messages",
  not_permitted: "X refused the message",
  rejected: "X refused the text",
  not_delivered: "the conversation does not show it",
  unreachable: "X did not answer",
  rate_limited: "X asked the run to wait",
  withdrawn: "the run ended before",
  suppressed: "they opted out before",
};

/**
 * Returns the waits of a run, except those that only space out its messages. A wait ends at the time that its event
 * states, or earlier if the run appends another event.
 */
function toWaits(events: readonly Recorded[], end: string | undefined): readonly RunWait[] {
  const own = events.filter(({ type }) => type !== "RecipientRequested");
  return own.flatMap(({ type, time, data }, at): RunWait[] => {
    if (type !== "RunPaused" || data.reason === "pace") return [];
    const ended = Date.parse(own[at + 1]?.time ?? end ?? data.until);
    return [{ from: Date.parse(time), to: Math.min(Date.parse(data.until), ended), reason: data.reason }];
  });
}

function countVariants(rows: readonly RunRow[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { variant, outcome } of rows)
    if (variant !== undefined && outcome === "sent") counts.set(variant, (counts.get(variant) ?? 0) + 1);
  return counts;
}

/**
 * Splits the cost of a run into parts. The parts have no amounts if today's prices of X do not add up to the recorded
 * cost.
 */
export function toCost(usage: Usage) {
  const { sends, users, followers, posts, messages, usd } = usage;
  const parts = [
    [countInWords(sends, "message"), sends * X_PRICES.send],
    [
      `${countInWords(users + followers, "person", "people")} looked up`,
      users * X_PRICES.user + followers * X_PRICES.follower,
    ],
    [`${countInWords(posts, "post")} read`, posts * X_PRICES.post],
    [`${countInWords(messages, "inbox message")} read`, messages * X_PRICES.message],
  ] as const;
  const sum = parts.reduce((total, [, millionths]) => total + millionths, 0) / MILLION;
  const isSum = Math.abs(sum - usd) < 0.000_001;
  return {
    usd,
    parts: parts.flatMap(([what, millionths]) =>
      millionths === 0 ? [] : [isSum ? `${what} $${(millionths / MILLION).toFixed(2)}` : what],
    ),
  };
}

const MILLION = 1_000_000;

/**
 * Highest price in US dollars that X charges for a read: `person` for looking up a person, `message` for reading a
 * message together with its sender's profile.
 */
export const READ_USD = {
  person: X_PRICES.user / MILLION,
  message: (X_PRICES.message + X_PRICES.user) / MILLION,
};

/** Names a run: "Run 36", "Dry run", or "Run" and the end of its id if the projection no longer knows it. */
export function nameRun({ started }: Runs, runId: string): string {
  const known = started.get(runId);
  if (known === undefined) return `Run ${shortenRunId(runId)}`;
  return known.number === null ? "Dry run" : `Run ${grouped(known.number)}`;
}

const ID_DIGITS_SHOWN = 8;

/** Returns the end of an id; any other text unchanged. */
function shortenRunId(runId: string): string {
  return EVENT_ID.test(runId) ? `…${runId.slice(-ID_DIGITS_SHOWN)}` : runId;
}

/** Says why a run ended; `abandoned` if its process died. */
export type RunEndReason = DataOf<"RunFinished">["reason"] | "abandoned";

/** Words for each reason, as they follow “The run ends when”. */
export const ENDS: Readonly<Record<RunEndReason, string>> = {
  completed: "no recipient is left",
  daily_limit_reached: "the day's quota is used up",
  limit_reached: "it reached the limit given at its start",
  window_closed: "the sending window is closed for the other recipients",
  too_many_failures: "too many messages failed",
  time_limit: "it reached the time limit of a run",
  stopped: "it was stopped",
  not_authorized: "X no longer accepts the authorization",
  network_unavailable: "X did not answer",
  request_rejected: "X refused a request",
  log_restored: "the log was restored on this day",
  clock_skewed: "the clocks of the machine and of the log are too far apart",
  credits_depleted: "the balance at X is empty",
  usage_capped: "a usage cap at X is reached",
  sender_restricted: "X restricts the account",
  missing_scope: "the authorization is too narrow",
  app_not_enrolled: "the X app has no access",
  fault: "an internal error, which the service logged",
  abandoned: "its process died",
};

/** Words for the reasons of a wait. */
export const WAITS: Readonly<Record<PauseReason, string>> = {
  pace: "spread its messages",
  rate_limited: "waited for X",
  network_unavailable: "X did not answer",
  settling: "looked up a message",
  window_closed: "waited for the window",
};

/** Describes the waits of a run: for each reason, how long they took together. */
export function sayWaits(waits: readonly RunWait[]): string {
  const sums = new Map<string, number>();
  for (const { reason, from, to } of waits) sums.set(WAITS[reason], (sums.get(WAITS[reason]) ?? 0) + to - from);
  return [...sums].map(([what, ms]) => `${what} for ${formatDuration(Math.round(ms / 1000))}`).join(", ");
}

/** Whole seconds between two times in ISO 8601; 0 if they are in the wrong order. */
export function toSeconds(from: string, to: string): number {
  return Math.max(0, Math.round((Date.parse(to) - Date.parse(from)) / 1000));
}
