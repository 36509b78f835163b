/**
 * Money as whole numbers of a currency's smallest unit, such as cents. No amount is ever a binary fraction: decimals
 * are read from text and written as text.
 */

/** Currencies of ISO 4217 whose smallest unit is not a hundredth, by the number of decimals. */
const DECIMALS = new Map<string, number>(
  [
    "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    "",
    "",
    "BHD IQD JOD KWD LYD OMR TND",
    "CLF UYW",
  ].flatMap((codes, decimals) => codes.split(" ").map((code) => [code, decimals] as const)),
);

const CENTS = 2;

/** Maximum amount in smallest units: 15 digits, which a JSON number of every program holds exactly. */
export const AMOUNT_MAX = 999_999_999_999_999;

let codes: ReadonlySet<string> | undefined;

/** True if the text is the ISO 4217 code of a currency, in capitals. */
export function isCurrency(code: string): boolean {
  codes ??= new Set([...Intl.supportedValuesOf("currency"), ...DECIMALS.keys()]);
  return /^[A-Z]{3}$/.test(code) && codes.has(code);
}

/** Returns how many decimals a currency has. */
export function decimalsIn(currency: string): number {
  return DECIMALS.get(currency) ?? CENTS;
}

/**
 * Parses a decimal such as `24.90` to smallest units. Undefined if it is no decimal, has more decimals than the currency,
 * or is beyond {@link AMOUNT_MAX}.
 */
export function parseAmount(decimal: string | number, currency: string): number | undefined {
  const [, sign, whole = "", fraction = ""] = /^(-?)(\d{1,15})(?:\.(\d{1,15}))?$/.exec(String(decimal)) ?? [];
  if (sign === undefined) return undefined;
  const decimals = decimalsIn(currency);
  const kept = fraction.replace(/0+$/, "").padEnd(decimals, "0");
  if (kept.length > decimals) return undefined;
  const amount = BigInt(whole + kept);
  // Returns 0 and not -0, so that a value is the same before and after JSON, which writes both as 0.
  return amount > AMOUNT_MAX ? undefined : amount === 0n ? 0 : Number(sign + amount);
}

/** Formats smallest units as a decimal: 2490 of EUR is `24.90`. */
export function formatAmount(amount: number | bigint, currency: string): string {
  return toDecimal(BigInt(amount), decimalsIn(currency));
}

/** Writes a whole number of units with the point before the last `decimals` digits. */
export function toDecimal(units: bigint, decimals: number): string {
  const digits = String(units < 0n ? -units : units).padStart(decimals + 1, "0");
  const sign = units < 0n ? "-" : "";
  return decimals === 0 ? sign + digits : `${sign}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

/** Divides and rounds half away from zero. `by` is more than 0. */
export function divideRounded(units: bigint, by: bigint): bigint {
  const half = (units < 0n ? -by : by) / 2n;
  return (units + half) / by;
}

/** Returns a decimal that JSON writes as it is, because a binary fraction would not hold it exactly. */
export const { rawJSON: rawNumber } = JSON as unknown as { readonly rawJSON: (decimal: string) => object };
