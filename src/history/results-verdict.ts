import { Type, type Static } from "@sinclair/typebox";
import { count, named, oneOf, orNull, text } from "../platform/common-schemas.ts";
import { countInWords, formatPercent, grouped } from "../platform/format-numbers-and-lists.ts";
import { differenceInterval, requiredSampleSize } from "../platform/proportion-statistics.ts";
import type { Figures, VariantRow } from "./results-figures.ts";

/**
 * Minimum number of sent messages with which a variant is compared with others. By a rate it is compared only if at
 * least as many recipients could have clicked or replied.
 */
export const COMPARED_MIN = 20;

/** Maximum time, in days at the full quota, for which a verdict asks the operator to send more messages. */
const WAIT_DAYS_MAX = 90;

const YEAR_DAYS = 365;

/** Rates by which variants are compared, in the order of their importance. */
const MEASURES = ["clicked", "replied"] as const;
type Measure = (typeof MEASURES)[number];

/** Words for each measure: after a share (`verb`), after a number of people, and as a noun. */
const WORDS: Readonly<Record<Measure, readonly [verb: string, people: string, noun: string]>> = {
  clicked: ["clicked", "click", "clicks"],
  replied: ["replied", "reply", "replies"],
};

const variant = orNull(text("B"));

/** Schema of the verdict on the variants of one template. */
export const templateVerdict = named(
  "TemplateVerdict",
  Type.Object({
    template: orNull(text("0123456789ab")),
    template_name: orNull(text("Autumn invite")),
    sent: count,
    outcome: oneOf("better", "split", "early", "same", "few"),
    /** Variant whose rate is certainly the highest, for each measure; null if no difference is certain. */
    winner: Type.Object({ clicked: variant, replied: variant }),
    /**
     * Number of further messages that would probably show which variant is better; null if that is clear already, or if
     * no number of messages would show it.
     */
    more_messages: orNull(count),
    title: text("B is better: twice as many click"),
    explanation: text("48 % clicked with B, 25 % with A."),
  }),
);
export type TemplateVerdict = Static<typeof templateVerdict>;

/** Limits on how many more messages can be sent to find out which variant of a template is better. */
export interface WaitLimits {
  /** Number of messages in a day that uses up its quota. */
  readonly dailyLimit: number;
  /** Counts the recipients who can still get a message, by what the log knows of them. Absent if that takes too long. */
  readonly countPeopleLeft?: () => number;
}

/** Counts of one variant's messages, by which it is compared. */
export interface VariantCounts {
  readonly name: string;
  readonly sent: number;
  /** For each measure: how many recipients clicked or replied (`hits`), and how many could have (`trials`). */
  readonly clicked: Share;
  readonly replied: Share;
}

interface Share {
  readonly hits: number;
  readonly trials: number;
}

type Judgement = Omit<TemplateVerdict, "template" | "template_name" | "sent">;

/**
 * Judges the variants of each template in rows by variant, in the order of the rows. A lone variant is not judged.
 * `toLimits` returns the limits for a template by its id.
 */
export function judgeTemplates(rows: readonly VariantRow[], toLimits: (template: string | null) => WaitLimits) {
  return [...Map.groupBy(rows, ({ group }) => group.template ?? null)].flatMap(([template, own]): TemplateVerdict[] => {
    const variants = own.map(({ group, figures }) => toCounts(group.variant ?? "", figures));
    const sent = variants.reduce((sum, counts) => sum + counts.sent, 0);
    const names = { template, template_name: own[0]?.group.template_name ?? null };
    return variants.length < 2 ? [] : [{ ...names, sent, ...judgeVariants(variants, toLimits(template)) }];
  });
}

function toCounts(name: string, { sent, replied, tracked }: Figures): VariantCounts {
  return {
    name,
    sent,
    clicked: { hits: tracked.clicked, trials: tracked.recipients },
    replied: { hits: replied, trials: sent },
  };
}

/**
 * Judges the variants of one template by their rates. A variant wins a measure if, compared with each other one, the 95
 * % interval of the difference is above 0. Variants with too few messages are left out.
 */
export function judgeVariants(variants: readonly VariantCounts[], limits: WaitLimits): Judgement {
  const judged = variants.filter(({ sent }) => sent >= COMPARED_MIN);
  if (judged.length < 2) return tooFew(variants);
  const compared = MEASURES.flatMap((measure) => compareRates(judged, measure) ?? []);
  const winnerBy = (measure: Measure) => compared.find((one) => one.measure === measure && one.odds > 0)?.best.name;
  const winner = { clicked: winnerBy("clicked") ?? null, replied: winnerBy("replied") ?? null };
  const [decided, other] = compared.toSorted((one, two) => Number(two.odds > 0) - Number(one.odds > 0));
  const base = { winner, more_messages: null };
  if (decided === undefined || decided.odds === 0) return { ...base, ...judgeWait(compared, limits) };
  const { measure, best, odds } = decided;
  if (other !== undefined && other.odds > 0 && other.best.name !== best.name) {
    const title = `${best.name} gets more ${WORDS[measure][2]}, ${other.best.name} more ${WORDS[other.measure][2]}`;
    return { ...base, outcome: "split", title, explanation: `${sayShares(decided)} ${sayShares(other)}` };
  }
  const luck = `Luck alone would give this in fewer than 1 of ${grouped(odds)} tries.`;
  const explanation = [sayShares(decided), luck, ...(other === undefined ? [] : [sayOther(other)])].join(" ");
  return { ...base, outcome: "better", title: `${best.name} is better: ${sayLead(decided)}`, explanation };
}

function tooFew(variants: readonly VariantCounts[]): Judgement {
  const counts = variants.map(({ name, sent }, at) =>
    at === 0 ? `${grouped(sent)} of ${COMPARED_MIN} sent with ${name}` : `${grouped(sent)} with ${name}`,
  );
  return {
    outcome: "few",
    winner: { clicked: null, replied: null },
    more_messages: null,
    title: "Not enough messages yet",
    explanation: `${counts.join(", ")}.`,
  };
}

/** Rate of a variant. */
interface Rated extends Share {
  readonly name: string;
  readonly rate: number;
  /**
   * Share of the variant's messages that the measure can count: clicks, for example, only with recipients who permit
   * tracking.
   */
  readonly measured: number;
}

/** Comparison of variants by one measure. */
interface Comparison {
  readonly measure: Measure;
  /** Variants from the highest rate to the lowest. */
  readonly rated: readonly Rated[];
  readonly best: Rated;
  /**
   * Luck alone would give the best variant this lead in fewer than one of `odds` tries. 0 if the lead is not certain.
   */
  readonly odds: number;
  /** Number of further messages that would probably make the lead certain; infinite if the rates are equal. */
  readonly missing: number;
}

/** Compares the rates of variants by one measure. Undefined if fewer than two variants have enough recipients for it. */
function compareRates(variants: readonly VariantCounts[], measure: Measure): Comparison | undefined {
  const rated = variants
    .filter((counts) => counts[measure].trials >= COMPARED_MIN)
    .map(({ name, sent, [measure]: { hits, trials } }): Rated => {
      return { name, hits, trials, rate: hits / trials, measured: trials / sent };
    })
    .sort((one, other) => other.rate - one.rate);
  const [best, next] = rated;
  if (best === undefined || next === undefined) return undefined;
  const isCertain = (z: number): boolean => rated.slice(1).every((other) => differenceInterval(best, other, z).low > 0);
  const odds = CERTAINTIES.findLast(([, z]) => isCertain(z))?.[0] ?? 0;
  const needed = requiredSampleSize(best.rate, next.rate) ?? Infinity;
  const lacking = [best, next].map(({ trials, measured }) => Math.max(1, needed - trials) / measured);
  return { measure, rated, best, odds, missing: variants.length * Math.max(...lacking) };
}

/**
 * Levels of certainty: luck gives such a difference in fewer than one of `odds` tries. `z`: the standard normal
 * quantile of the two-sided interval.
 */
const CERTAINTIES: readonly (readonly [odds: number, z: number])[] = [
  [20, 1.959964],
  [100, 2.575829],
  [1_000, 3.290527],
];

/**
 * Judges variants that do not certainly differ: says if the messages that would decide can be sent within reasonable
 * time.
 */
function judgeWait(compared: readonly Comparison[], { dailyLimit, countPeopleLeft }: WaitLimits) {
  const peopleLeft = countPeopleLeft?.() ?? Infinity;
  const nearest = compared.reduce((one, other) => (other.missing < one.missing ? other : one));
  const more = roundUp(nearest.missing);
  const days = Math.ceil(more / dailyLimit);
  const shares = sayShares(nearest);
  const wait = days > YEAR_DAYS ? "beyond a year at the full quota" : `${countInWords(days, "day")} at the full quota`;
  if (more <= peopleLeft && days <= WAIT_DAYS_MAX) {
    const explanation = `${shares} About ${countInWords(more, "more message")} decide it: ${wait}.`;
    return { outcome: "early" as const, more_messages: more, title: "Too early to call", explanation };
  }
  const title = "No difference worth waiting for";
  if (more === Infinity) return { outcome: "same" as const, title, explanation: `${shares} Choose by taste.` };
  const reach =
    more > peopleLeft ? `, and your list has ${countInWords(peopleLeft, "person", "people")} left.` : `: ${wait}.`;
  const explanation = `${shares} To tell them apart would take about ${countInWords(more, "more message")}${reach} Choose by taste.`;
  return { outcome: "same" as const, more_messages: more, title, explanation };
}

/** Rounds up to two digits, because the number is an estimate. */
function roundUp(number: number): number {
  if (number === Infinity) return number;
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(number)) - 1);
  return Math.ceil(number / unit) * unit;
}

/** Says the rates of a measure, such as `48 % clicked with B, 25 % with A.` */
function sayShares({ measure, rated }: Comparison): string {
  const [verb] = WORDS[measure];
  const [best, next] = rated;
  if (rated.length === 2 && best!.rate === next!.rate) return `${formatPercent(best!.rate)} ${verb} with both.`;
  const shares = rated.map(({ name, rate }, at) => `${formatPercent(rate)}${at === 0 ? ` ${verb}` : ""} with ${name}`);
  return `${shares.join(", ")}.`;
}

/** Says how far the best variant is ahead of the next one. */
function sayLead({ measure, rated: [best, next] }: Comparison): string {
  const [, people] = WORDS[measure];
  const times = best!.rate / next!.rate;
  const whole = Math.round(times);
  if (whole < 2 || whole > TIMES_MAX || Math.abs(times / whole - 1) > TIMES_ERROR) return `more people ${people}`;
  return `${whole === 2 ? "twice" : `${whole} times`} as many ${people}`;
}

/**
 * Maximum ratio of two rates that a verdict puts into words, such as `5 times as many`. The words are used only if they
 * are off by at most {@link TIMES_ERROR} of the true ratio.
 */
const TIMES_MAX = 5;
const TIMES_ERROR = 0.1;

function sayOther(comparison: Comparison): string {
  const noun = WORDS[comparison.measure][2];
  if (comparison.odds === 0) return `${noun.charAt(0).toUpperCase()}${noun.slice(1)} do not differ clearly.`;
  return sayShares(comparison);
}
