import { Type, type Static } from "@sinclair/typebox";
import { WHAT_IF_RULES, type OtherRules } from "../../config/what-if.ts";
import { plain } from "../../history/words/sentence.ts";
import { count, named, oneOf, text } from "../../platform/common-schemas.ts";
import { recipientChanges, type Changes, type ComparedCount, type DayCounts } from "./tally.ts";
import type { WhatIf } from "./what-if.ts";

const difference = Type.Integer({ examples: [-1] });
const compared = named("ComparedCount", Type.Object({ was: count, would: count, difference }));
const inPart = named("ComparedInPart", Type.Object({ was: count, would: count, unknown: count, difference }));

/** Counts of one day, or of all days. */
const counts = Type.Object({
  messages: compared,
  sent: inPart,
  skipped: Type.Record(Type.String(), compared, { description: "By reason." }),
  clicks: inPart,
});

const place = Type.Object({ position: count });

/** The effect of other rules, as the API shows it. */
export const whatIfReport = Type.Object({
  rules: Type.Array(oneOf(...WHAT_IF_RULES)),
  /** The position up to which the log was decided again. */
  as_of: place,
  /** Position of the event that records the question. */
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

/** Returns the rows of a table, by day and in total: label, was, would be, difference and, if it can occur, unknown. */
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

/** Descriptions of the lists of recipients, each shown after its number. */
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

/** Describes what the answer leaves open, in one sentence each. */
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

/** Describes what is assumed to stay as it was, in one sentence each. */
export function describeAssumed({ runs, unexplained }: WhatIfReport): readonly string[] {
  const sentences: readonly (readonly [number, string])[] = [
    [runs.unrecorded, "runs did not record their rules: today's settings are taken for theirs"],
    [unexplained, "messages do not follow from the rules of then: they stay as they were"],
  ];
  return sentences.filter(([count]) => count > 0).map(([count, sentence]) => `${count} ${sentence}`);
}
