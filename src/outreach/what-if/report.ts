import { Type, type Static } from "@sinclair/typebox";
import { WHAT_IF_RULES, type OtherRules } from "../../config/parse-what-if-rules.ts";
import { plain } from "../../history/sentences/sentence-parts.ts";
import { count, named, oneOf, text } from "../../platform/common-schemas.ts";
import {
  recipientChanges,
  type Changes,
  type ComparedCount,
  type DayCounts,
} from "./compared-counts-and-recipients.ts";
import type { WhatIf } from "./decide-recorded-runs-again.ts";

const difference = Type.Integer({ examples: [-1] });
const compared = named("ComparedCount", Type.Object({ was: count, would: count, difference }));
const inPart = named("ComparedInPart", Type.Object({ was: count, would: count, unknown: count, difference }));

/** Schema of a what-if report's counts, of one day or of all days. */
const counts = Type.Object({
  messages: compared,
  sent: inPart,
  skipped: Type.Record(Type.String(), compared, { description: "By reason." }),
  clicks: inPart,
});

const place = Type.Object({ position: count });

/** Schema of a what-if answer in the API: the effect of other rules. */
export const whatIfReport = Type.Object({
  rules: Type.Array(oneOf(...WHAT_IF_RULES)),
  /** Position of the last event that the what-if calculation has taken into account. */
  as_of: place,
  /** Position of the event that records the what-if question. */
  recorded_at: place,
  runs: Type.Object({ was: count, would: count, unrecorded: count }),
  total: counts,
  days: Type.Array(Type.Composite([Type.Object({ day: text("2026-11-20") }), counts])),
  recipients: recipientChanges,
  unknown: Type.Object({
    sends: count,
    clicks: count,
    reactions: count,
    opt_outs: count,
    messages_read: count,
    unread_sources: count,
  }),
  unexplained: count,
});
export type WhatIfReport = Static<typeof whatIfReport>;

export function toReport(
  { names }: OtherRules,
  found: WhatIf,
  { position, recordedAt }: { readonly position: number; readonly recordedAt: number },
): WhatIfReport {
  const { days, total, recipients, unknown, runs, unexplained } = found;
  return {
    rules: [...names],
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

function toCounts({ messages, sent, skipped, clicks }: DayCounts): Static<typeof counts> {
  return {
    messages: withDifference(messages),
    sent: withDifference(sent),
    skipped: Object.fromEntries([...skipped].map(([reason, counts]) => [reason, withDifference(counts)])),
    clicks: withDifference(clicks),
  };
}

function withDifference<Counts extends ComparedCount>(counts: Counts): Counts & { difference: number } {
  return { ...counts, difference: counts.would - counts.was };
}

/** Prepares a what-if report for a page. */
export function describeReport(report: WhatIfReport) {
  const { runs, as_of, recorded_at, days, recipients } = report;
  return {
    runs,
    position: as_of.position,
    recordedAt: recorded_at.position,
    isSame: days.length === 0,
    rows: toRows(report),
    /** Sentences on what the log cannot tell, and on what the answer assumes to be unchanged. */
    open: [...describeUnknown(report), ...describeAssumed(report)],
    lists: LIST_NAMES.map((name) => ({
      name,
      title: LISTS[name],
      count: recipients[name].count,
      shown: recipients[name].shown.map(({ recipient, was, would }) => {
        return { recipient, was: describeOutcome(was), would: describeOutcome(would) };
      }),
    })),
  };
}

/**
 * Returns the rows of a what-if table, by day and in total: label, was, would be, difference and, where possible,
 * unknown.
 */
export function toRows({ days, total }: WhatIfReport) {
  return [...days, { day: "total", ...total }].flatMap(countRows);
}

function countRows({ day, messages, sent, skipped, clicks }: WhatIfReport["days"][number]) {
  const row = (what: string, { was, would, difference }: Static<typeof compared>, unknown?: number) => {
    return { day, what, was, would, difference: difference > 0 ? `+${difference}` : String(difference), unknown };
  };
  return [
    row("messages", messages),
    row("sent", sent, sent.unknown),
    ...Object.entries(skipped).map(([reason, counts]) => row(`skipped: ${plain(reason)}`, counts)),
    row("clicks", clicks, clicks.unknown),
  ];
}

/** Descriptions of a what-if report's lists of recipients, each shown after the number of recipients. */
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

/** Returns a sentence for each thing that a what-if answer cannot tell. */
export function describeUnknown({ unknown }: WhatIfReport): readonly string[] {
  const { sends, clicks, reactions, opt_outs, messages_read, unread_sources } = unknown;
  const sentences: readonly (readonly [number, string])[] = [
    [sends, "messages would be new: no log shows if X accepts them, nor replies and clicks"],
    [clicks, "clicks count for neither side: their message would not have been sent, or their user agent is unknown"],
    [reactions, "replies or opt-outs answer messages that would not have been sent: they are left out"],
    [opt_outs, "opt-outs matched other stop words: they are kept"],
    [messages_read, "messages of the inbox have no stored text: they may contain the other stop words"],
    [unread_sources, "runs would have continued with recipients that only X knows: these are not counted"],
  ];
  return sentences.filter(([count]) => count > 0).map(([count, sentence]) => `unknown: ${count} ${sentence}`);
}

/**
 * Returns a sentence for each assumption of a what-if answer: runs that recorded no rules had today's rules, and
 * messages that the rules of their runs do not explain stay as they were. Empty if there are no such runs or messages.
 */
export function describeAssumed({ runs, unexplained }: WhatIfReport): readonly string[] {
  const sentences: readonly (readonly [number, string])[] = [
    [runs.unrecorded, "runs did not record their rules: today's settings are used instead"],
    [unexplained, "messages do not match the rules of their time: they stay as they were"],
  ];
  return sentences.filter(([count]) => count > 0).map(([count, sentence]) => `${count} ${sentence}`);
}
