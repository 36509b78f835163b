import type { DataOf, Folded } from "../../../events/catalog.ts";
import type { Recipient, RecipientSource, RunEnd, SkipReason } from "../../../events/outreach.ts";
import { toRecipient, type Contact } from "../../../projections/contacts.ts";
import { isoTime } from "../../platform/clock.ts";
import { dayIn } from "../quota-day.ts";
import type { RuleChanges, RulesInForce } from "../run-rules.ts";
import { noCounts, skippedFor, type DayCounts } from "./tally.ts";
import type { Walk, WalkTarget } from "./recipient-walk.ts";
import { contactIn, createWorld, toMoment, type Identities, type Met, type World } from "./redecide.ts";

export interface ComparedRules {
  readonly changes: RuleChanges;
  /** Today's rules, for runs that recorded none. */
  readonly today: RulesInForce;
  /** Today's sources, in the order in which they are merged. */
  readonly sources: readonly RecipientSource[];
  readonly runMaxMs: number;
  readonly identities: Identities;
}

/** A run as it would be under the other rules. */
export interface HypotheticalRun {
  readonly id: string;
  readonly startedMs: number;
  walk: Walk;
  /** Recipients of the last page who had no turn yet. */
  open: Contact[];
  source: WalkTarget["source"];
  /** Recipients who had their turn. Each has one. */
  readonly seen: Set<Contact>;
  /** Recipients of a network page that the log skipped, but the other rules would not. */
  readonly deferred: Met[];
  /** Zones where the window is closed for recipients whose turn comes later. */
  readonly zones: Set<string>;
  /** When the run resumes, ms since 1970. */
  resumeAt: number | undefined;
  /** True if the rules of then would not make it wait. */
  waitsByItself: boolean;
  ended: RunEnd | undefined;
  /** True if the run of the log is over and this one only waits for its window. */
  isAlone: boolean;
}

export type Comparison = ReturnType<typeof createComparison>;

/** Two worlds that are folded in parallel: the log as it is, and as it would be under other rules. */
export function createComparison(rules: ComparedRules) {
  return {
    ...rules,
    was: createWorld(rules.today),
    would: createWorld({ ...rules.today, ...rules.changes }),
    /** Counts by day of the quota. */
    days: new Map<string, DayCounts>(),
    /** Counts of what no log can know. */
    unknown: {
      /** Replies and opt-outs that answer messages that would not have been sent. */
      reactions: 0,
      /** Opt-outs that were recognised by other stop words. They stay. */
      opt_outs: 0,
      /** Messages that were read and whose texts are not kept. Other stop words may be in them. */
      messages_read: 0,
      /** Runs that would have continued with recipients that only the network knows. */
      unread_sources: 0,
    },
    /** `unrecorded`: runs of the log that recorded no rules. */
    runs: { was: 0, would: 0, unrecorded: 0 },
    /** Links of messages that would not have been sent. */
    lostLinks: new Set<string>(),
    /** The run in progress under the other rules. */
    run: undefined as HypotheticalRun | undefined,
    /** Messages of the log that do not follow from the rules of then. */
    unexplained: 0,
    /** Position of the current event. */
    position: 0,
    /** The moment of the decision, ms since 1970: that of the current event, or when a waiting run resumes. */
    ms: 0,
  };
}

export function countsOn({ days }: Comparison, day: string): DayCounts {
  return days.getOrInsertComputed(day, noCounts);
}

/** Every time zone begins its days at a full quarter of an hour. */
const QUARTER_MS = 15 * 60_000;

/** The last result. Neighbours in the log are mostly of the same quarter of an hour, and the calendar is slow. */
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

/** Folds an event that the log does not hold into the world of the other rules. */
export function invent<Type extends Invented>({ would, position, ms }: Comparison, type: Type, data: DataOf<Type>) {
  would.fold({ type, data, position, version: 0, time: isoTime(ms) } as unknown as Folded);
}

export function skip(comparison: Comparison, { id }: HypotheticalRun, recipient: Recipient, reason: SkipReason): void {
  countSkip(comparison, "would", reason);
  invent(comparison, "DirectMessageSkipped", { run_id: id, recipient, reason });
}

/** Adds a message whose outcome is unknown. It uses a place of the quota, and its recipient gets no other message. */
export function write(
  comparison: Comparison,
  attempt: { readonly attempt_id: string; readonly run_id: string; readonly recipient: Recipient },
  variant: string,
): void {
  const { day, timezone } = toMoment(comparison.would, comparison.ms);
  const { messages, sent } = countsOn(comparison, day);
  messages.would++;
  sent.unknown++;
  // A recipient who is known by handle alone has no id before the network is asked.
  const data = attempt as Omit<DataOf<"DirectMessageInDoubt">, "detail">;
  invent(comparison, "DirectMessageAttempted", { ...data, text: "", variant, links: [], day, timezone });
  invent(comparison, "DirectMessageSent", { ...data, message_id: "", settled_by: "answer" });
}

/** Returns a recipient's names from both worlds. */
export function namedRecipient({ was }: Comparison, contact: Contact): Recipient {
  const recipient = toRecipient(contact);
  const known = contactIn(was, recipient);
  return known === undefined ? recipient : { ...recipient, ...toRecipient(known) };
}
