import type { EventType, Folded } from "../../../events/event-types-and-codec.ts";
import { account } from "../../../projections/account.ts";
import { campaigns } from "../../../projections/campaigns.ts";
import { contacts } from "../../../projections/contacts.ts";
import { links } from "../../../projections/links.ts";
import { quota } from "../../../projections/quota.ts";
import { run } from "../../../projections/current-run.ts";
import { msOf } from "../../../projections/parse-log-times.ts";
import { inTimeSlices } from "../../platform/work-in-time-slices.ts";
import { createClickCounter, type BotRule } from "./count-clicks.ts";
import { createComparison, type ComparedRules, type Comparison } from "./compare-rules.ts";
import { takeEvent } from "./apply-recorded-events.ts";
import { addUp, compareRecipients, isChanged } from "./compared-counts-and-recipients.ts";
import { resumeUntil } from "./hypothetical-run.ts";

export interface WhatIfQuestion extends ComparedRules {
  /** Rule by which the what-if question recognises bots. Undefined: the recorded judgement on each click counts. */
  readonly isBot: BotRule | undefined;
  /**
   * Other stop words of the question. `keepsAll`: they include all of today's. Undefined: the question does not change
   * them.
   */
  readonly stopWords: { readonly keepsAll: boolean } | undefined;
  /** Maximum number of recipients in each list of the answer. */
  readonly limit: number;
}

export type WhatIf = Awaited<ReturnType<ReturnType<typeof createWhatIf>["finish"]>>;

/** Event types that a what-if calculation reads: decisions of runs, and the events on which decisions depend. */
export const WHAT_IF_TYPES: readonly EventType[] = [
  ...new Set([...run.types, ...quota.types, ...contacts.types, ...account.types, ...campaigns.types, ...links.types]),
  "RunRefused",
  "LinkClicked",
];

/**
 * Decides all runs of a log again under other rules, by the code that runs use. Folds two worlds in one pass: the log
 * as it is, and as it would be. Where the decisions differ, no outcome is invented.
 */
export function createWhatIf({ isBot, stopWords, limit, ...rules }: WhatIfQuestion) {
  const comparison = createComparison(rules);
  const { was, would, days, unknown, runs } = comparison;
  const takeClick = createClickCounter(comparison, isBot);
  return {
    /**
     * Applies the next event of the log to both worlds: to the states as the log gives them, and to the states as the
     * other rules would have made them.
     */
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
        /**
         * Number of recorded messages that today's code would not send by the rules of the log's run. The comparison
         * leaves these messages as they were.
         */
        unexplained: comparison.unexplained,
      };
    },
  };
}

/**
 * Counts the opt-outs and messages that other stop words might judge differently. Texts of messages are not kept, so
 * none can be read again.
 */
function countTexts({ unknown }: Comparison, { keepsAll }: { readonly keepsAll: boolean }, event: Folded): void {
  if (event.type === "InboxRead") unknown.messages_read += event.data.messages;
  if (event.type !== "RecipientSuppressed" || event.data.message_id === undefined || keepsAll) return;
  unknown.opt_outs++;
}
