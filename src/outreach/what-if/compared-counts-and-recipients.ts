import { Type, type Static } from "@sinclair/typebox";
import { skipReason, type SkipReason } from "../../../events/outreach.ts";
import { toRecipient, type Contact } from "../../../projections/contact-state.ts";
import { msOf } from "../../../projections/parse-log-times.ts";
import { count, named, orNull, text } from "../../platform/common-schemas.ts";
import { recipientAnswer } from "../../recipients/resolve-recipient.ts";
import { dayIn } from "../quota-day.ts";
import { contactIn, type World } from "./redecide.ts";

/** A count under the rules of the log's runs, and under the other rules of the what-if question. */
export interface ComparedCount {
  was: number;
  would: number;
}

/**
 * A count under the log's rules and under the other rules. `unknown`: the part that the log cannot tell, such as
 * messages that only the other rules would send, and that the network might have refused.
 */
interface ComparedInPart extends ComparedCount {
  unknown: number;
}

export type DayCounts = ReturnType<typeof noCounts>;

/** Creates empty counts of one calendar day of the quota. */
export function noCounts() {
  const none = (): ComparedInPart => ({ was: 0, would: 0, unknown: 0 });
  return {
    /**
     * Numbers of messages that runs decided to send, by the log (`was`) and under the other rules (`would`). Each uses
     * one place of the day's quota.
     */
    messages: { was: 0, would: 0 },
    /**
     * Number of the day's messages that the network accepted (`was`), and of those that it would have accepted if runs
     * had decided by the other rules (`would`).
     */
    sent: none(),
    skipped: new Map<SkipReason, ComparedCount>(),
    /** Clicks that no bot made, including those suspected to come from the network itself. */
    clicks: none(),
  };
}

export function skippedFor({ skipped }: DayCounts, reason: SkipReason): ComparedCount {
  return skipped.getOrInsertComputed(reason, () => ({ was: 0, would: 0 }));
}

export function addUp(days: Iterable<DayCounts>): DayCounts {
  const total = noCounts();
  for (const { messages, sent, skipped, clicks } of days) {
    add(total.messages, messages);
    addInPart(total.sent, sent);
    addInPart(total.clicks, clicks);
    for (const [reason, counts] of skipped) add(skippedFor(total, reason), counts);
  }
  return total;
}

function add(total: ComparedCount, { was, would }: ComparedCount): void {
  total.was += was;
  total.would += would;
}

function addInPart(total: ComparedInPart, counts: ComparedInPart): void {
  add(total, counts);
  total.unknown += counts.unknown;
}

export function isChanged({ messages, sent, skipped, clicks }: DayCounts): boolean {
  const differs = ({ was, would }: ComparedCount): boolean => was !== would;
  const isUnknown = sent.unknown + clicks.unknown > 0;
  return isUnknown || [messages, sent, clicks, ...skipped.values()].some(differs);
}

/**
 * Schema of a recipient's outcome, by the log or under the other rules: the day of their newest message in the quota's
 * time zone (null if they got none), and the reasons why they were skipped.
 */
const outcome = named(
  "RecipientOutcome",
  Type.Object({ day: orNull(text("2026-11-20")), skipped: Type.Array(skipReason) }),
);
type Outcome = Static<typeof outcome>;

const changed = named(
  "ChangedRecipients",
  Type.Object({
    count,
    shown: Type.Array(Type.Object({ recipient: recipientAnswer, was: outcome, would: outcome }), {
      description: "The first of them.",
    }),
  }),
);

/**
 * Schema of the recipients whose outcome the other rules change. `lost`: had a message and would have none; `gained`:
 * the reverse; `moved`: on another day; `skips`: only other skip reasons.
 */
export const recipientChanges = Type.Object({ lost: changed, gained: changed, moved: changed, skips: changed });
export type Changes = Static<typeof recipientChanges>;

/**
 * Compares each recipient's outcome by the log with that under the other rules, one recipient a step, and returns the
 * recipients who differ. Lists no erased recipient, because they have no name.
 */
export function* compareRecipients(was: World, would: World, limit: number): Generator<void, Changes, void> {
  const changes = { lost: newList(), gained: newList(), moved: newList(), skips: newList() };
  for (const contact of was.state.contacts.people.values()) {
    yield;
    const recipient = toRecipient(contact);
    const before = toOutcome(was, contact);
    const after = toOutcome(would, contactIn(would, recipient));
    const kind = kindOfChange(before, after);
    if (kind === undefined) continue;
    const list = changes[kind];
    list.count++;
    if (list.shown.length < limit) list.shown.push({ recipient, was: before, would: after });
  }
  return changes;
}

function newList(): Static<typeof changed> {
  return { count: 0, shown: [] };
}

function toOutcome({ rules }: World, contact: Contact | undefined): Outcome {
  const { attempted_at: at, skipped = [] } = contact ?? {};
  return { day: at === undefined ? null : dayIn(rules.timezone, msOf(at)), skipped: skipped.toSorted() };
}

function kindOfChange(was: Outcome, would: Outcome): keyof Changes | undefined {
  if (was.day !== would.day) {
    if (would.day === null) return "lost";
    return was.day === null ? "gained" : "moved";
  }
  return was.skipped.join() === would.skipped.join() ? undefined : "skips";
}
