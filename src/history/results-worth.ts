import { Type, type Static } from "@sinclair/typebox";
import type { ConversionCounts } from "../../projections/conversions.ts";
import type { Message, Results } from "../../projections/results.ts";
import type { Runs } from "../../projections/runs.ts";
import { count, named, orNull, text } from "../platform/common-schemas.ts";
import { decimalsIn, divideRounded, formatAmount, toDecimal } from "../platform/money.ts";

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
   * Upper bound of what the network charged for the messages, and for signals in `total` and by day, in US dollars;
   * null if unknown.
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

type Worth = ReturnType<typeof noWorth>;

export function noWorth() {
  return {
    conversions: 0,
    reversed: 0,
    /** Values by currency, in its smallest unit. */
    values: new Map<string, bigint>(),
    /** Cost in millionths of a dollar; undefined if none is recorded. */
    cost: undefined as bigint | undefined,
  };
}

export function addConversions(worth: Worth, { conversions, reversed, currency, value }: ConversionCounts): void {
  worth.conversions += conversions;
  worth.reversed += reversed;
  if (currency !== "") worth.values.set(currency, (worth.values.get(currency) ?? 0n) + BigInt(value));
}

export function addCost(worth: Worth, cost: bigint | undefined): void {
  if (cost !== undefined) worth.cost = (worth.cost ?? 0n) + cost;
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
    cost_usd: cost === undefined ? null : toDecimal(cost, USD_DECIMALS),
    cost_per_conversion_usd: cost === undefined ? null : divide(cost, conversions, USD_DECIMALS),
  };
}

/** Divides an amount into equal parts and writes one of them as a decimal; null if there are no parts. */
function divide(units: bigint, parts: number, decimals: number): string | null {
  return parts === 0 ? null : toDecimal(divideRounded(units, BigInt(parts)), decimals);
}

/**
 * Divides the cost of each run, in millionths of a dollar, among its messages that the network may have charged. The
 * parts sum exactly to the cost.
 */
export function shareCosts({ started, signals }: Runs, { groups, messages }: Results) {
  const charged = new Map<string, Message[]>();
  for (const message of messages.values())
    if (message.outcome === "sent" || message.outcome === "in_doubt")
      charged.getOrInsertComputed(groups[message.group]!.run_id, () => []).push(message);
  const shares = new Map<Message, bigint>();
  /** Costs of signals, with their day, and of dry runs and runs that sent no message, with the time of their start. */
  const others = [...signals].map(([at, usd]) => ({ at, cost: toMillionths(usd) }));
  for (const [runId, { started_at, end }] of started) {
    if (end?.usd == null) continue;
    const cost = toMillionths(end.usd);
    const own = charged.get(runId) ?? [];
    if (own.length === 0) others.push({ at: started_at, cost });
    for (const [at, share] of shareOut(cost, own.length).entries()) shares.set(own[at]!, share);
  }
  return { messages: shares, others };
}

function toMillionths(usd: number): bigint {
  return BigInt(Math.round(usd * MILLION));
}

/** Divides a cost into parts that differ by at most one millionth and sum exactly to it. */
export function shareOut(cost: bigint, parts: number): readonly bigint[] {
  const upTo = (part: number): bigint => (cost * BigInt(part)) / BigInt(parts);
  return Array.from({ length: parts }, (_, part) => upTo(part + 1) - upTo(part));
}

/** Writes values of several currencies in a line, such as `24.90 EUR, 500 JPY`; null if there are none. */
export function formatValues(
  values: readonly Static<typeof conversionValue>[],
  member: "value" | "per_message",
): string | null {
  const known = values.flatMap(({ currency, ...one }) => (one[member] === null ? [] : [`${one[member]} ${currency}`]));
  return known.length === 0 ? null : known.join(", ");
}
