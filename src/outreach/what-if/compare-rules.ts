import type { DataOf, Folded } from "../../../events/event-types-and-codec.ts";
import type { Recipient, RecipientSource, RunEnd, SkipReason } from "../../../events/outreach.ts";
import { toRecipient, type Contact } from "../../../projections/contact-state.ts";
import { isoTime } from "../../platform/clock-ids-and-timers.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { findFollowed } from "../campaigns/recipient-refusal-rules.ts";
import { dayIn } from "../quota-day.ts";
import type { RuleChanges, RulesInForce } from "../run-rules.ts";
import { noCounts, skippedFor, type DayCounts } from "./compared-counts-and-recipients.ts";
import type { Walk, WalkTarget } from "./recipients-in-run-order.ts";
import { contactIn, createWorld, toMoment, type Identities, type Met, type World } from "./redecide.ts";

export interface ComparedRules {
  readonly changes: RuleChanges;
  /** Today's rules, used for runs whose start recorded no rules. */
  readonly today: RulesInForce;
  /** Configured sources of recipients, in the order in which a run reads them. */
  readonly sources: readonly RecipientSource[];
  readonly runMaxMs: number;
  readonly identities: Identities;
}

/** A run under the other rules of a what-if question. */
export interface HypotheticalRun {
  readonly id: string;
  readonly startedMs: number;
  walk: Walk;
  /** Recipients of the hypothetical run's last page who had no turn yet. */
  open: Contact[];
  source: WalkTarget["source"];
  /** Recipients who had their turn in the hypothetical run, so that none gets two. */
  readonly seen: Set<Contact>;
  /**
   * Recipients that the log's run skipped and the other rules would not skip, if the run found them in the network.
   * They get a turn after the page on which the run found them.
   */
  readonly deferred: Met[];
  /** Time zones in which the sending window is closed for postponed recipients. */
  readonly zones: Set<string>;
  /**
   * Time at which the hypothetical run resumes after a closed sending window, ms since 1970; undefined if it does not
   * wait.
   */
  resumeAt: number | undefined;
  /** True if the other rules make the run wait for the sending window, and the rules of the log's run do not. */
  waitsByItself: boolean;
  ended: RunEnd | undefined;
  /** True once the log's run has ended while the hypothetical run still waits for its sending window to open. */
  isAlone: boolean;
}

export type Comparison = ReturnType<typeof createComparison>;

/** Creates a comparison of two worlds, folded in parallel: the log as it is, and as it would be under other rules. */
export function createComparison(rules: ComparedRules) {
  return {
    ...rules,
    was: createWorld(rules.today),
    would: createWorld({ ...rules.today, ...rules.changes }),
    /** Counts for each day of the quota: as the log has them, and as they would be under the other rules. */
    days: new Map<string, DayCounts>(),
    /** Counts of what the log cannot tell about the outcome under the other rules. */
    unknown: {
      /** Number of replies and opt-outs that answer messages which the other rules would not have sent. */
      reactions: 0,
      /**
       * Number of opt-outs that were recognised by stop words which the other rules do not have. Such replies count as
       * opt-outs under the other rules too.
       */
      opt_outs: 0,
      /**
       * Number of messages from recipients. The log does not contain their texts, so it cannot tell which of them
       * contain stop words of the other rules.
       */
      messages_read: 0,
      /** Number of runs that would have continued with recipients that only the network knows. */
      unread_sources: 0,
    },
    /**
     * Number of runs in the log (`was`) and under the other rules (`would`). `unrecorded`: runs of the log that
     * recorded no rules.
     */
    runs: { was: 0, would: 0, unrecorded: 0 },
    /** Links in messages that the other rules would not have sent. */
    lostLinks: new Set<string>(),
    /** The run in progress under the other rules; undefined if there is none. */
    run: undefined as HypotheticalRun | undefined,
    /**
     * Number of recorded messages that the comparison cannot explain: under the rules of the log's run it decides not
     * to send them.
     */
    unexplained: 0,
    /** Position of the log's event for which the comparison decides now. */
    position: 0,
    /**
     * Moment for which the comparison decides about a recipient under both sets of rules, ms since 1970: when the
     * current event was recorded, or when a hypothetical run resumes after its wait.
     */
    ms: 0,
  };
}

export function countsOn({ days }: Comparison, day: string): DayCounts {
  return days.getOrInsertComputed(day, noCounts);
}

/**
 * A quarter of an hour, in ms. A day begins at a full quarter of an hour in every time zone, so all moments of one
 * quarter are on the same day.
 */
const QUARTER_MS = 15 * 60_000;

/**
 * The last computed day. Neighbouring events are mostly of the same quarter of an hour, and computing a day is slow.
 */
const last = { timezone: "", quarter: Number.NaN, day: "" };

export function dayAt({ rules: { timezone } }: World, ms: number): string {
  const quarter = Math.floor(ms / QUARTER_MS);
  if (quarter !== last.quarter || timezone !== last.timezone)
    Object.assign(last, { timezone, quarter, day: dayIn(timezone, ms) });
  return last.day;
}

export function countSkip(comparison: Comparison, side: "was" | "would", reason: SkipReason): void {
  skippedFor(countsOn(comparison, dayAt(comparison[side], comparison.ms)), reason)[side]++;
}

type Invented = "DirectMessageAttempted" | "DirectMessageSent" | "DirectMessageSkipped" | "RunStarted" | "RunFinished";

/** Folds a made-up event, which the log does not hold, into the states under the other rules. */
export function invent<Type extends Invented>({ would, position, ms }: Comparison, type: Type, data: DataOf<Type>) {
  would.fold({ type, data, position, version: 0, time: isoTime(ms) } as unknown as Folded);
}

export function skip(comparison: Comparison, { id }: HypotheticalRun, recipient: Recipient, reason: SkipReason): void {
  countSkip(comparison, "would", reason);
  invent(comparison, "DirectMessageSkipped", { run_id: id, recipient, reason, ...campaignNow(comparison) });
}

/**
 * Adds a message that only the other rules would send. It counts against the quota, and its recipient gets no other
 * message. It is unknown if the network would have accepted it.
 */
export function write(
  comparison: Comparison,
  attempt: { readonly attempt_id: string; readonly run_id: string; readonly recipient: Recipient },
  variant: string,
): void {
  const { day, timezone } = toMoment(comparison.would, comparison.ms);
  const { messages, sent } = countsOn(comparison, day);
  messages.would++;
  sent.unknown++;
  // The id of this recipient may be missing, because only the network knows it if the log has just the handle. The type
  // requires one.
  const data = { ...attempt, ...campaignNow(comparison) } as Omit<DataOf<"DirectMessageInDoubt">, "detail">;
  const { state } = comparison.would;
  const follows = findFollowed(state, contactIn(comparison.would, attempt.recipient), data.campaign);
  const about = { ...data, ...omitUndefined({ follows }), text: "", variant, links: [], day, timezone };
  invent(comparison, "DirectMessageAttempted", about);
  invent(comparison, "DirectMessageSent", { ...data, message_id: "", settled_by: "answer" });
}

/**
 * Returns the event member `campaign` for the run in progress under the other rules; empty for the campaign `default`.
 */
function campaignNow({ would }: Comparison) {
  return omitUndefined({ campaign: would.state.run.current?.campaign });
}

/** Returns the id and the username of a recipient, as far as the log or the hypothetical run has them. */
export function namedRecipient({ was }: Comparison, contact: Contact): Recipient {
  const recipient = toRecipient(contact);
  const known = contactIn(was, recipient);
  return known === undefined ? recipient : { ...recipient, ...toRecipient(known) };
}
