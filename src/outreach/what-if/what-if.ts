import type { EventType, Folded } from "../../../events/catalog.ts";
import { account } from "../../../projections/account.ts";
import { contacts } from "../../../projections/contacts.ts";
import { quota } from "../../../projections/quota.ts";
import { run } from "../../../projections/run.ts";
import { msOf } from "../../../projections/time.ts";
import { inTimeSlices } from "../../platform/time-slices.ts";
import { createClickCounter, type BotRule } from "./count-clicks.ts";
import { createComparison, type ComparedRules, type Comparison } from "./two-worlds.ts";
import { takeEvent } from "./apply-events.ts";
import { addUp, compareRecipients, isChanged } from "./tally.ts";
import { resumeUntil } from "./hypothetical-run.ts";

export interface WhatIfQuestion extends ComparedRules {
  /** Rule by which the question recognises bots. Undefined: clicks count as a bot's if they were recorded so. */
  readonly isBot: BotRule | undefined;
  /** Other stop words of the question; undefined: those of that time. `keepsAll`: all of today's are among them. */
  readonly stopWords: { readonly keepsAll: boolean } | undefined;
  /** Most recipients named in each list of the answer. */
  readonly limit: number;
}

export type WhatIf = Awaited<ReturnType<ReturnType<typeof createWhatIf>["finish"]>>;

/**
 * Event types that a what-if calculation reads: the decisions of runs, and what they depend on. An event of another
 * type changes neither world.
 */
export const WHAT_IF_TYPES: readonly EventType[] = [
  ...new Set([...run.types, ...quota.types, ...contacts.types, ...account.types]),
  "RunRefused",
  "LinkClicked",
];

/**
 * Decides all runs of a log again under other rules, by the same functions. Folds two worlds in one pass: the log as it
 * is, and as it would be. Where both decide alike, the log's event holds for both; where they differ, no outcome is
 * made up.
 */
export function createWhatIf({ isBot, stopWords, limit, ...rules }: WhatIfQuestion) {
  const comparison = createComparison(rules);
  const { was, would, days, unknown, runs } = comparison;
  const takeClick = createClickCounter(comparison, isBot);
  return {
    /** Applies the next event of the log to both worlds. */
    take(event: Folded): void {
      const ms = msOf(event.time);
      takeClick(event);
      resumeUntil(comparison, ms);
      comparison.position = event.position;
      comparison.ms = ms;
      if (stopWords !== undefined) countTexts(comparison, stopWords, event);
      takeEvent(comparison, event);
    },
    /**
     * Ends the comparison after all events, and returns the answer. `now`: time up to which a waiting hypothetical run
     * resumes, in ms since 1970.
     */
    async finish(now: number) {
      takeClick(undefined);
      resumeUntil(comparison, now);
      const changed = [...days].filter(([, counts]) => isChanged(counts));
      return {
        /** Counts of the quota days that the other rules would have changed, oldest day first. */
        days: new Map(changed.sort(([one], [other]) => (one < other ? -1 : 1))),
        total: addUp(days.values()),
        recipients: await inTimeSlices(compareRecipients(was, would, limit)),
        unknown,
        runs,
        /** Number of messages that today's code would not decide by the rules of that time. They stay as they were. */
        unexplained: comparison.unexplained,
      };
    },
  };
}

/**
 * Counts the messages and opt-outs that other stop words might change. Texts of messages are not kept, so none can be
 * read again.
 */
function countTexts({ unknown }: Comparison, { keepsAll }: { readonly keepsAll: boolean }, event: Folded): void {
  if (event.type === "InboxRead") unknown.messages_read += event.data.messages;
  if (event.type !== "RecipientSuppressed" || event.data.message_id === undefined || keepsAll) return;
  unknown.opt_outs++;
}
