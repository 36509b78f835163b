import type { OtherRules, WhatIfRule } from "../../config/what-if.ts";
import type { SkipReason } from "../../../events/outreach.ts";
import { plain } from "../../history/words/phrases.ts";
import type { Changes, ComparedCount, ComparedInPart, DayCounts } from "./tally.ts";
import type { WhatIf } from "./what-if.ts";

interface Difference {
  readonly difference: number;
}

/** Of a day, or of all. */
export interface ReportedCounts {
  readonly messages: ComparedCount & Difference;
  readonly sent: ComparedInPart & Difference;
  readonly skipped: Readonly<Partial<Record<SkipReason, ComparedCount & Difference>>>;
  readonly clicks: ComparedInPart & Difference;
}

/** What other rules would have done, as JSON. */
export interface WhatIfReport extends Pick<WhatIf, "runs" | "recipients" | "unexplained"> {
  readonly rules: readonly WhatIfRule[];
  /** The log up to there was decided again. */
  readonly as_of: { readonly position: number };
  /** Of the event that records the question. */
  readonly recorded_at: { readonly position: number };
  readonly total: ReportedCounts;
  readonly days: readonly (ReportedCounts & { readonly day: string })[];
  readonly unknown: WhatIf["unknown"] & { readonly sends: number; readonly clicks: number };
}

export function toReport(
  { names }: OtherRules,
  found: WhatIf,
  { position, recordedAt }: { readonly position: number; readonly recordedAt: number },
): WhatIfReport {
  const { days, total, recipients, unknown, runs, unexplained } = found;
  return {
    rules: names,
    as_of: { position },
    recorded_at: { position: recordedAt },
    runs,
    total: toCounts(total),
    days: [...days].map(([day, counts]) => ({ day, ...toCounts(counts) })),
    recipients,
    unknown: { sends: total.sent.unknown, clicks: total.clicks.unknown, ...unknown },
    unexplained,
  };
}

function toCounts({ messages, sent, skipped, clicks }: DayCounts): ReportedCounts {
  return {
    messages: withDifference(messages),
    sent: withDifference(sent),
    skipped: Object.fromEntries([...skipped].map(([reason, counts]) => [reason, withDifference(counts)])),
    clicks: withDifference(clicks),
  };
}

function withDifference<Counts extends ComparedCount>(counts: Counts): Counts & Difference {
  return { ...counts, difference: counts.would - counts.was };
}

/** The rows of a table, day by day and in total: what was counted, was, would be, difference and, where there may be some, unknown. */
export function toRows({ days, total }: WhatIfReport) {
  return [...days, { day: "total", ...total }].flatMap(countRows);
}

function countRows({ day, messages, sent, skipped, clicks }: WhatIfReport["days"][number]) {
  const row = (what: string, { was, would, difference }: ComparedCount & Difference, unknown?: number) => {
    return { day, what, was, would, difference: difference > 0 ? `+${difference}` : String(difference), unknown };
  };
  return [
    row("messages", messages),
    row("sent", sent, sent.unknown),
    ...Object.entries(skipped).map(([reason, counts]) => row(`skipped: ${plain(reason)}`, counts)),
    row("clicks", clicks, clicks.unknown),
  ];
}

/** The lists of recipients, each behind its number. */
export const LISTS: Readonly<Record<keyof Changes, string>> = {
  lost: "had a message and would have none",
  gained: "had no message and would have one",
  moved: "would have their message on another day",
  skips: "would be skipped for other reasons",
};

export const LIST_NAMES = ["lost", "gained", "moved", "skips"] as const;

export function describeOutcome({ day, skipped }: Changes["lost"]["shown"][number]["was"]): string {
  const skips = skipped.length === 0 ? [] : [`skipped: ${skipped.map(plain).join(", ")}`];
  return [...(day === null ? [] : [`message on ${day}`]), ...skips].join("; ") || "nothing";
}

/** What the answer leaves open, each in a sentence. */
export function describeUnknown({ unknown }: WhatIfReport): readonly string[] {
  const { sends, clicks, reactions, opt_outs, messages_read, unread_sources } = unknown;
  const sentences: readonly (readonly [number, string])[] = [
    [sends, "messages never left as these rules have them: no log knows whether X takes them, nor replies and clicks"],
    [clicks, "clicks count for neither side: their message would not have left, or their user agent is not known"],
    [reactions, "replies or opt-outs answer messages that would not have left: they are left out"],
    [opt_outs, "opt-outs were read by other stop words: they stay"],
    [messages_read, "messages were read whose texts are not kept: other stop words may be in them"],
    [unread_sources, "runs would have gone on to recipients that only X knows: they are not counted"],
  ];
  return sentences.filter(([count]) => count > 0).map(([count, sentence]) => `unknown: ${count} ${sentence}`);
}

/** What stays as it was, each in a sentence. */
export function describeAssumed({ runs, unexplained }: WhatIfReport): readonly string[] {
  const sentences: readonly (readonly [number, string])[] = [
    [runs.unrecorded, "runs did not record their rules: today's settings are taken for theirs"],
    [unexplained, "messages do not follow from the rules of then: they stay as they were"],
  ];
  return sentences.filter(([count]) => count > 0).map(([count, sentence]) => `${count} ${sentence}`);
}
