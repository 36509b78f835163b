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
  /** Undefined: clicks count as a bot's if they did then. */
  readonly isBot: BotRule | undefined;
  /** Undefined: the stop words of then. `keepsAll`: they include all of today's. */
  readonly stopWords: { readonly keepsAll: boolean } | undefined;
  /** Most recipients named in each list. */
  readonly limit: number;
}

export type WhatIf = Awaited<ReturnType<ReturnType<typeof createWhatIf>["finish"]>>;

/** Types of events that decide or are decided. All other events change neither world. */
export const WHAT_IF_TYPES: readonly EventType[] = [
  ...new Set([...run.types, ...quota.types, ...contacts.types, ...account.types]),
  "RunRefused",
  "LinkClicked",
];

/**
 * Decides all runs of a log again under other rules, by the same functions, in one pass. Folds two worlds: the log as
 * it is, and as it would be. Where both decide alike the log's event holds for both; where they differ, nothing is
 * invented.
 */
export function createWhatIf({ isBot, stopWords, limit, ...rules }: WhatIfQuestion) {
  const comparison = createComparison(rules);
  const { was, would, days, unknown, runs } = comparison;
  const takeClick = createClickCounter(comparison, isBot);
  return {
    /** Takes the events of the log in order. */
    take(event: Folded): void {
      const ms = msOf(event.time);
      takeClick(event);
      resumeUntil(comparison, ms);
      comparison.position = event.position;
      comparison.ms = ms;
      if (stopWords !== undefined) countTexts(comparison, stopWords, event);
      takeEvent(comparison, event);
    },
    /** Returns the answer after all events. Until `now`, in ms since 1970, a run may have waited for its window. */
    async finish(now: number) {
      takeClick(undefined);
      resumeUntil(comparison, now);
      const changed = [...days].filter(([, counts]) => isChanged(counts));
      return {
        /** The days on which something differs, in order. */
        days: new Map(changed.sort(([one], [other]) => (one < other ? -1 : 1))),
        total: addUp(days.values()),
        recipients: await inTimeSlices(compareRecipients(was, would, limit)),
        unknown,
        runs,
        /** Messages that do not follow from the rules of then by today's code. They stay as they were. */
        unexplained: comparison.unexplained,
      };
    },
  };
}

/** Counts texts in which other stop words may match, because texts of messages are not kept. */
function countTexts({ unknown }: Comparison, { keepsAll }: { readonly keepsAll: boolean }, event: Folded): void {
  if (event.type === "InboxRead") unknown.messages_read += event.data.messages;
  if (event.type !== "RecipientSuppressed" || event.data.message_id === undefined || keepsAll) return;
  unknown.opt_outs++;
}
