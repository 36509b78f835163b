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
  /** Today's, for runs that recorded none. */
  readonly today: RulesInForce;
  /** Today's, in the order in which they are merged. */
  readonly sources: readonly RecipientSource[];
  readonly runMaxMs: number;
  readonly identities: Identities;
}

/** A run as the other rules make it. */
export interface HypotheticalRun {
  readonly id: string;
  readonly startedMs: number;
  walk: Walk;
  /** Those of the last page that had no turn yet. */
  open: Contact[];
  source: WalkTarget["source"];
  /** Each recipient has one turn. */
  readonly seen: Set<Contact>;
  /** Recipients of a page of the network: skipped, but not under the other rules. */
  readonly deferred: Met[];
  /** Zones where the window is closed for recipients whose turn comes later. */
  readonly zones: Set<string>;
  /** When it goes on, ms since 1970. */
  resumeAt: number | undefined;
  /** The rules of then would not make it wait. */
  waitsByItself: boolean;
  ended: RunEnd | undefined;
  /** The run of the log is over: this one only waits for its window. */
  isAlone: boolean;
}

export type Comparison = ReturnType<typeof createComparison>;

/** Two worlds that are folded side by side: the log as it is, and as it would be under other rules. */
export function createComparison(rules: ComparedRules) {
  return {
    ...rules,
    was: createWorld(rules.today),
    would: createWorld({ ...rules.today, ...rules.changes }),
    /** By days of the quota. */
    days: new Map<string, DayCounts>(),
    /** What no log can know. */
    unknown: {
      /** Replies and opt-outs that answer messages which would not have left. */
      reactions: 0,
      /** Opt-outs that were read by other stop words: they stay. */
      opt_outs: 0,
      /** Messages read, whose texts are not kept: other stop words may be in them. */
      messages_read: 0,
      /** Runs that would have gone on to recipients that only the network knows. */
      unread_sources: 0,
    },
    /** `unrecorded`: runs of the log that recorded no rules. */
    runs: { was: 0, would: 0, unrecorded: 0 },
    /** Links of messages that would not have left. */
    lostLinks: new Set<string>(),
    /** The run in progress under the other rules. */
    run: undefined as HypotheticalRun | undefined,
    /** Messages of the log that do not follow from the rules of then. */
    unexplained: 0,
    /** Of the event that is taken. */
    position: 0,
    /** The moment that is decided, ms since 1970: of that event, or when a run that waits goes on. */
    ms: 0,
  };
}

export function countsOn({ days }: Comparison, day: string): DayCounts {
  return days.getOrInsertComputed(day, noCounts);
}

/** No time zone begins a day within a quarter of an hour. */
const QUARTER_MS = 15 * 60_000;

/** Neighbours in the log are of the same quarter of an hour, and the calendar is slow. */
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

/** A message whose outcome is unknown: it takes its place, and its recipient gets no other one. */
export function write(
  comparison: Comparison,
  attempt: { readonly attempt_id: string; readonly run_id: string; readonly recipient: Recipient },
  variant: string,
): void {
  const { day, timezone } = toMoment(comparison.would, comparison.ms);
  const { messages, sent } = countsOn(comparison, day);
  messages.would++;
  sent.unknown++;
  // Who is known by a handle alone has no id before the network is asked.
  const data = attempt as Omit<DataOf<"DirectMessageInDoubt">, "detail">;
  invent(comparison, "DirectMessageAttempted", { ...data, text: "", variant, links: [], day, timezone });
  invent(comparison, "DirectMessageSent", { ...data, message_id: "", settled_by: "answer" });
}

/** All that both worlds know of a recipient's names. */
export function namedRecipient({ was }: Comparison, contact: Contact): Recipient {
  const recipient = toRecipient(contact);
  const known = contactIn(was, recipient);
  return known === undefined ? recipient : { ...recipient, ...toRecipient(known) };
}
