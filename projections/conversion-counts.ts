import type { Folded } from "../events/event-types-and-codec.ts";
import type { Projection } from "./projection.ts";
import { linkKey } from "./link-keys-and-text-links.ts";
import { DAY_CHARACTERS } from "./parse-log-times.ts";

/** Conversions that have a day, a link, a recipient, a name and a currency in common. */
export interface ConversionCounts {
  /** UTC day on which the conversions occurred. */
  readonly day: string;
  /** Link that the conversions are attributed to; empty if they are unattributed. */
  readonly link: string;
  /**
   * Code of the recipient's own link through which the visitors came, if that recipient grants tracking; empty for all
   * other conversions.
   */
  readonly code: string;
  readonly name: string;
  /** ISO 4217 code; empty if the conversions have no value. */
  readonly currency: string;
  conversions: number;
  reversed: number;
  /**
   * Sum of the conversions' values, less those of reversed conversions. A whole number of the currency's smallest unit,
   * as text, because it may exceed the range of a number.
   */
  value: string;
}

interface Conversions {
  counts: Map<string, ConversionCounts>;
}

/**
 * Maximum number of counts that are separate by link and recipient. Further conversions are counted without link and
 * recipient, so that the sums stay right.
 */
const COUNTS_MAX = 100_000;

export const conversions: Projection<Conversions> = {
  name: "conversions",
  version: 1,
  types: ["ConversionRecorded", "ConversionReversed"],
  initial: () => ({ counts: new Map() }),
  evolve(state, event) {
    if (event.type === "ConversionRecorded" || event.type === "ConversionReversed") count(state, event);
    return state;
  },
};

function count({ counts }: Conversions, event: Folded<"ConversionRecorded" | "ConversionReversed">): void {
  const { name, value = 0, currency = "", occurred_at, domain, short_code = "", click, code = "" } = event.data;
  const day = occurred_at.slice(0, DAY_CHARACTERS);
  const link = domain === undefined || click === undefined ? "" : linkKey(domain, short_code);
  const own = JSON.stringify([day, link, code, name, currency]);
  const isKept = counts.has(own) || counts.size < COUNTS_MAX;
  const group = isKept ? { day, link, code, name, currency } : { day, link: "", code: "", name, currency };
  const key = isKept ? own : JSON.stringify(Object.values(group));
  const counted = counts.getOrInsertComputed(key, () => ({ ...group, conversions: 0, reversed: 0, value: "0" }));
  counted[event.type === "ConversionRecorded" ? "conversions" : "reversed"]++;
  counted.value = String(BigInt(counted.value) + BigInt(value));
}
