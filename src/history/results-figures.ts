import { Type, type Static } from "@sinclair/typebox";
import type { ConversionCounts } from "../../projections/conversion-counts.ts";
import type { Results } from "../../projections/message-outcomes-and-reactions.ts";
import type { Runs } from "../../projections/runs.ts";
import type { MessageSums } from "../../projections/sum-messages-by-group.ts";
import { basis, recipientSource } from "../../events/outreach.ts";
import { count, named, orNull, text } from "../platform/common-schemas.ts";
import { decimalsIn, divideRounded, formatAmount, toDecimal } from "../platform/money.ts";

/** Properties by which results can be grouped. */
export const GROUPINGS = ["template", "variant", "run", "campaign", "day", "source", "basis", "link"] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** Schema of the value of conversions in one currency, less those reversed. */
const conversionValue = Type.Object({
  currency: text("EUR"),
  value: text("1245.00"),
  /** Value for each message sent, with two more decimals than the currency; null if none was sent. */
  per_message: orNull(text("12.4500")),
});

/** Schemas of what messages brought and cost. All money is a decimal as text. */
export const worthFigures = {
  conversions: named(
    "Conversions",
    Type.Object({ total: count, reversed: count, values: Type.Array(conversionValue) }),
  ),
  /**
   * Upper bound of what the network charged, in US dollars; null if unknown. Rows count the messages; the total and
   * rows by day also count the network's signals.
   */
  cost_usd: orNull(text("1.250000")),
  cost_per_conversion_usd: orNull(text("0.250000")),
};

/** Number of decimals of a price in US dollars: costs are counted in millionths of a dollar. */
const USD_DECIMALS = 6;
const MILLION = 10 ** USD_DECIMALS;

/** Number of additional decimals of a value for each message. */
const SHARE_DECIMALS = 2;
const SHARE_UNITS = 10n ** BigInt(SHARE_DECIMALS);

const share = Type.Number({ minimum: 0, maximum: 1, examples: [0.184] });

/** Schema of a rate, such as replies to sent messages. The true rate lies between `low` and `high` (95 %, Wilson). */
const resultRate = named("ResultRate", Type.Object({ rate: share, low: share, high: share }));
export type ResultRate = Static<typeof resultRate>;

/**
 * Counts of messages. `attempted` includes messages without an outcome. Replies and opt-outs count each recipient once.
 */
const messages = {
  attempted: count,
  sent: count,
  failed: count,
  in_doubt: count,
  /** Number of sent messages that the network reported as read; the others may have been read too. */
  seen: count,
  replied: count,
  opted_out: count,
};

/**
 * Counts of clicks. `total`: without suspected ones. `unique`: distinct visitors by {@link countVisitors}, counted once
 * for each link and day.
 */
const clicks = { total: count, unique: count, suspected: count, anonymous: count, bots: count, probes: count };

/**
 * Counts of recipients who permit tracking and whose message was sent. `clicked` and `converted`: how many of them
 * clicked, and had a conversion.
 */
const tracked = { recipients: count, clicked: count, clicks: count, suspected: count, converted: count };

/**
 * Schemas of the counts and rates that the API returns for a group of messages, such as one variant: sent, read, replied
 * to, clicked.
 */
export const resultFigures = Type.Object({
  ...messages,
  /** Lower bound of the share of sent messages that were read, by the network's reports; null if none was sent. */
  seen_rate: orNull(resultRate),
  /** Share of sent messages with a reply; null if none was sent. */
  reply_rate: orNull(resultRate),
  /** Counts of clicks on links that no other group has sent; null if the group has no such link. */
  clicks: orNull(named("LinkClicks", Type.Object(clicks))),
  /** `first_click_ms`: median time from the message to the first click, of recipients who clicked; null if none did. */
  tracked: named("TrackedClicks", Type.Object({ ...tracked, first_click_ms: orNull(count) })),
  /** Share of the recipients who permit tracking that clicked; null if there are none. */
  click_rate: orNull(resultRate),
  /** Share of the recipients who permit tracking that had a conversion; null if there are none. */
  conversion_rate: orNull(resultRate),
  ...worthFigures,
});
export type Figures = Static<typeof resultFigures>;

/**
 * Schema of a row's group: the property that all its messages or clicks share. Null if older messages do not record the
 * property.
 */
export const resultGroup = Type.Partial(
  Type.Object({
    template: orNull(text("0123456789ab")),
    /** Name that the operator last gave the template; null if it has none. */
    template_name: orNull(text("Autumn invite")),
    variant: text("A"),
    run_id: text("01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11"),
    campaign: text("spring"),
    /** Calendar day of the row, in UTC. */
    day: text("2026-11-20"),
    source: orNull(recipientSource),
    basis: orNull(basis),
    link: text("go.example/autumn"),
  }),
);
export type ResultGroup = Static<typeof resultGroup>;

/** Row of results by variant. */
export interface VariantRow {
  readonly group: ResultGroup;
  readonly figures: Figures;
}

type Worth = ReturnType<typeof noWorth>;

export function noWorth() {
  return {
    conversions: 0,
    reversed: 0,
    /** Values by currency, in its smallest unit. */
    values: new Map<string, bigint>(),
    /** Cost in millionths of a dollar; undefined if none is recorded. */
    cost: undefined as number | undefined,
  };
}

export function addConversions(worth: Worth, { conversions, reversed, currency, value }: ConversionCounts): void {
  worth.conversions += conversions;
  worth.reversed += reversed;
  if (currency !== "") worth.values.set(currency, (worth.values.get(currency) ?? 0n) + BigInt(value));
}

export function addCost(worth: Worth, cost: number | undefined): void {
  if (cost !== undefined) worth.cost = (worth.cost ?? 0) + cost;
}

/** Converts what messages brought and cost to figures. `sent`: the number of messages that were sent. */
export function toWorthFigures({ conversions, reversed, values, cost }: Worth, sent: number) {
  const sorted = [...values].sort(([one], [other]) => (one < other ? -1 : 1));
  return {
    conversions: {
      total: conversions,
      reversed,
      values: sorted.map(([currency, value]) => ({
        currency,
        value: formatAmount(value, currency),
        per_message: divide(value * SHARE_UNITS, sent, decimalsIn(currency) + SHARE_DECIMALS),
      })),
    },
    cost_usd: cost === undefined ? null : toDecimal(BigInt(cost), USD_DECIMALS),
    cost_per_conversion_usd: cost === undefined ? null : divide(BigInt(cost), conversions, USD_DECIMALS),
  };
}

/** Divides an amount into equal parts and writes one of them as a decimal; null if there are no parts. */
function divide(units: bigint, parts: number, decimals: number): string | null {
  return parts === 0 ? null : toDecimal(divideRounded(units, BigInt(parts)), decimals);
}

/**
 * Divides the cost of each run, in millionths of a dollar, among its messages that the network may have charged. The
 * parts sum exactly to the cost. `parts`: the part of each of `sums`, in the same order; undefined without one.
 */
export function shareCosts({ started, signals }: Runs, groups: Results["groups"], sums: readonly MessageSums[]) {
  const charged = new Map<string, { cost: number | undefined; messages: number; shared: number }>();
  const runs = groups.map(({ run_id }) =>
    charged.getOrInsertComputed(run_id, () => ({ cost: undefined, messages: 0, shared: 0 })),
  );
  for (const { group, messages } of sums) runs[group]!.messages += messages.sent + messages.in_doubt;
  /**
   * Costs that belong to no message: those of signals, on their day, and those of dry runs and of runs that sent no
   * message, at the time of their start.
   */
  const others = [...signals].map(([at, usd]) => ({ at, cost: toMillionths(usd) }));
  for (const [runId, { started_at, end }] of started) {
    if (end?.usd == null) continue;
    const cost = toMillionths(end.usd);
    const run = charged.get(runId);
    if (run === undefined || run.messages === 0) others.push({ at: started_at, cost });
    else run.cost = cost;
  }
  const parts = sums.map(({ group, messages }) => {
    const run = runs[group]!;
    const from = run.shared;
    run.shared += messages.sent + messages.in_doubt;
    return run.cost === undefined || run.shared === from
      ? undefined
      : sumParts(run.cost, run.messages, [from, run.shared]);
  });
  return { parts, others };
}

function toMillionths(usd: number): number {
  return Math.round(usd * MILLION);
}

/**
 * Divides a cost into parts that differ by at most one millionth and sum exactly to it. Cost times parts is below 2^53:
 * a billion dollars among a few messages, or a thousand among nine million.
 */
export function shareOut(cost: number, parts: number): readonly number[] {
  return Array.from({ length: parts }, (_, part) => sumParts(cost, parts, [part, part + 1]));
}

/** Returns the sum of the consecutive parts `from` to `end` (exclusive) of a cost that is divided into `parts`. */
function sumParts(cost: number, parts: number, [from, end]: readonly [from: number, end: number]): number {
  return Math.floor((cost * end) / parts) - Math.floor((cost * from) / parts);
}

/** Writes values of several currencies in a line, such as `24.90 EUR, 500 JPY`; null if there are none. */
export function formatValues(
  values: readonly Static<typeof conversionValue>[],
  member: "value" | "per_message",
): string | null {
  const known = values.flatMap(({ currency, ...one }) => (one[member] === null ? [] : [`${one[member]} ${currency}`]));
  return known.length === 0 ? null : known.join(", ");
}
